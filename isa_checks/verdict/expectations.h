// Expectations: the contract of a kernel's ISA, and check_isa, which compares it with what the compiler produced.
#pragma once
#include "isa_checks/analysis/facts.h"
#include "isa_checks/decode/program.h"
#include "machine/promises.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa {

struct KernelAnalysis; // isa_checks/analysis/kernel_analysis.h

// What is asked of a kernel. The fields are the lines of machine/promises.def; their names are those in reports.
using WidthExpectation = Widths;
using Expectations = Promises;

struct ExpectationResult {
  std::string name;     // "min_waves_per_simd", "global_loads", "forbidden flat_"
  std::string expected; // ">= 8"
  std::string found;    // "7, limited by vgprs"
  bool met = false;
  std::vector<std::string> evidence; // up to four offending instructions: "0x140: global_load_dword v0, v1, s[2:3]"
  // By how much what was found stays within what was expected, in its own unit; below 0 when broken. Nothing for a promise without a bound.
  std::optional<double> margin = {};
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
// need the whole analysis. no_errata asks for faults of single instructions alone, which is all where needs_analysis is false.
IsaReport check_isa(const Program& program, const KernelFacts& facts, const Expectations& expectations);

// Whether what is promised can be judged by the whole analysis alone: rules, and no_errata where registers were spilled to lanes or
// cache lines are written back, which faults of compilers are about.
bool needs_analysis(const Program& program, const Expectations& expectations);

std::string to_text(const IsaReport& report);
std::string to_json(const IsaReport& report);

} // namespace kiln::isa
