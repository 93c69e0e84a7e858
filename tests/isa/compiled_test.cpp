// Compiled code: row_norm, whose assembly clang made from tests/isa/row_norm.hip. Counts were taken by hand from that.
#include "isa_checks/decode/assembler.h"
#include "isa_checks/verdict/expectations.h"
#include "tests/isa/linked.h"
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

namespace compiled_test {
using namespace kiln::isa;

namespace {

CodeObject row_norm(std::string_view arch, bool linked) {
  const std::string path = std::string(KILN_SOURCE_DIR "/tests/isa/row_norm.") + std::string(arch) + ".s";
  std::ifstream file(path);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  const Bytes bytes = assemble(text.str(), target_facts(arch), path);
  return load_code_object(linked ? testing::link(bytes) : bytes, path);
}

} // namespace

TEST_CASE("row_norm: facts") {
  for (const bool linked : {false, true})
    for (std::string_view arch : {"gfx942", "gfx950"}) {
      CAPTURE(arch);
      const CodeObject object = row_norm(arch, linked);
      Disassembler disassembler(object.target());
      REQUIRE(object.kernels().size() == 1);
      const KernelFacts facts = kernel_facts(object, object.kernel("row_norm"), disassembler);
      CHECK(facts.undecodable == 0);
      CHECK(facts.code_bytes == (arch == "gfx942" ? 696 : 664)); // "codeLenInByte" in the .s
      CHECK(facts.instructions == (arch == "gfx942" ? 127 : 119));
      CHECK(facts.resources.vgprs == 18);
      CHECK(facts.resources.sgprs == 24);
      CHECK(facts.resources.lds_bytes == 1024);
      CHECK(facts.resources.workgroup_size == 256);
      CHECK(facts.occupancy.waves_per_simd == 8);
      CHECK(facts.widths(MemorySpace::global, MemoryDirection::load) == std::map<int, std::uint32_t>{{16, 2}});
      CHECK(facts.widths(MemorySpace::global, MemoryDirection::store) == std::map<int, std::uint32_t>{{16, 1}});
      CHECK(facts.widths(MemorySpace::lds, MemoryDirection::load) == std::map<int, std::uint32_t>{{16, 1}});
      CHECK(facts.widths(MemorySpace::lds, MemoryDirection::store) == std::map<int, std::uint32_t>{{4, 1}});
      CHECK(facts.vmcnt == WaitHistogram{{0, 2}});
      CHECK(facts.lgkmcnt == WaitHistogram{{0, 3}});
      CHECK(facts.count(InstructionClass::trans) == 2);
      CHECK(facts.count(InstructionClass::packed) == 8);
      CHECK(facts.count(InstructionClass::barrier) == 1);
      CHECK(facts.count(InstructionClass::branch) == 5);
    }
}

TEST_CASE("row_norm: loops") {
  for (std::string_view arch : {"gfx942", "gfx950"}) {
    CAPTURE(arch);
    const CodeObject object = row_norm(arch, true);
    Disassembler disassembler(object.target());
    const Program program = build_program(object.kernel("row_norm"), disassembler);
    REQUIRE(program.loops.size() == 3);
    CHECK(program.irreducible_edges.empty());
    CHECK(program.wild_branches == 0);
    for (const Loop& loop : program.loops) {
      CHECK(loop.depth == 1);
      CHECK(loop.blocks.size() == 1);
    }
  }
}

TEST_CASE("row_norm: expectations met, and the planted division found") {
  for (std::string_view arch : {"gfx942", "gfx950"}) {
    const CodeObject object = row_norm(arch, true);
    Disassembler disassembler(object.target());
    const Kernel& kernel = object.kernel("row_norm");
    const Program program = build_program(kernel, disassembler);
    const KernelFacts facts = kernel_facts(object, kernel, program.instructions);
    Expectations expectations{.no_scratch = true,
                              .no_spills = true,
                              .max_vgprs = 64,
                              .min_waves_per_simd = 8,
                              .global_loads = {.min_bytes = 16, .at_least = 2},
                              .global_stores = {.min_bytes = 16},
                              .lds = {.min_bytes = 16, .exceptions = 1},
                              .required = {"v_rsq_f32"},
                              .forbidden = {"flat_", "ds_bpermute"}};
    CHECK(check_isa(program, facts, expectations).met());
    expectations.forbidden.push_back("v_div_scale"); // the source divides without saying that it may be inexact
    const IsaReport report = check_isa(program, facts, expectations);
    CHECK_FALSE(report.met());
    CHECK(report.results.back().found == "2");
    CHECK(report.results.back().evidence.size() == 2);
    for (std::size_t i = 0; i + 1 < report.results.size(); ++i) CHECK(report.results[i].met);
  }
}

} // namespace compiled_test
