// Expectations: the contract of a kernel's ISA, and check_isa, which compares it with what the compiler produced.
#pragma once
#include "isa_checks/analysis/facts.h"
#include "isa_checks/decode/program.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa {

struct KernelAnalysis; // isa_checks/analysis/kernel_analysis.h

// On the bytes that one lane moves with one instruction (16 is a 128-bit access). Zero fields ask for nothing.
struct WidthExpectation {
  int min_bytes = 0;            // every instruction moves at least this much,
  std::uint32_t exceptions = 0; // but for so many
  std::uint32_t at_least = 0;   // and at least so many move min_bytes or more
  bool operator==(const WidthExpectation&) const = default;
};

// Only what is set is checked. Field names are the names in reports.
struct Expectations {
  bool no_scratch = false; // no scratch memory, and no scratch instruction
  bool no_spills = false;
  // That no_spills grants, to lanes of VGPRs and, as no_scratch says, to AGPRs. Loops that load move none of them.
  int max_sgpr_spills = 0, max_vgpr_spills = 0;
  std::optional<int> max_vgprs = {};     // architectural + accumulation
  std::optional<int> max_lds_bytes = {}; // static, per workgroup
  std::optional<double> min_waves_per_simd = {};
  WidthExpectation global_loads = {}, global_stores = {}; // global, buffer and flat instructions; atomics are neither
  WidthExpectation lds = {};                              // reads and writes; both values of a read2 or write2 count
  std::vector<std::string> required = {};                 // each is the beginning of some mnemonic: "v_cvt_pk_fp8_f32"
  std::vector<std::string> forbidden = {};                // each is the beginning of no mnemonic: "v_div_scale", "flat_"
  std::optional<std::uint32_t> max_instructions = {};     // in the code, not executed
  // Waits for vmcnt(0) with something outstanding, in loops that load from device memory; each wait counts once.
  std::optional<std::uint32_t> max_loop_drains = {};
  // Bytes of loads that a wave keeps in flight at the least, in each innermost loop that loads from device memory.
  std::optional<std::uint32_t> min_bytes_in_flight = {};
  // Both of these, and moves of granted spills, only in innermost loops (polls of a flag may lie within) with an instruction that begins
  // so; empty: in all that load.
  std::string in_loops_with = {};
  // Rules by id that have nothing to say about the kernel, infos excepted: "HAZ002". "HAZ002:info": no info either, so that the
  // compiler left all wait states that LLVM's table asks for.
  std::vector<std::string> no_findings = {};
  bool no_errata = false; // no instruction that erratum_of (isa_checks/verdict/errata.h) calls an error
  bool operator==(const Expectations&) const = default;
};

struct ExpectationResult {
  std::string name;     // "min_waves_per_simd", "global_loads", "forbidden flat_"
  std::string expected; // ">= 8"
  std::string found;    // "7, limited by vgprs"
  bool met = false;
  std::vector<std::string> evidence; // up to four offending instructions: "0x140: global_load_dword v0, v1, s[2:3]"
  bool operator==(const ExpectationResult&) const = default;
};

struct IsaReport {
  std::string kernel, arch;
  std::vector<ExpectationResult> results; // one for each expectation that was set, in the order of Expectations
  bool met() const;
  bool operator==(const IsaReport&) const = default;
};

// A verdict is data. Throws Error only for an id in no_findings that no rule has.
IsaReport check_isa(const KernelAnalysis& kernel, const Expectations& expectations);
// The same in a fraction of the time, of `program` and `facts` of one kernel. Throws Error when no_findings names a rule: rules
// need the whole analysis.
IsaReport check_isa(const Program& program, const KernelFacts& facts, const Expectations& expectations);

std::string to_text(const IsaReport& report);
std::string to_json(const IsaReport& report);

} // namespace kiln::isa
