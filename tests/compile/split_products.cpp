// Proves what LLVM makes of products whose workgroups have parts of several tiles: the first step waits for its own loads alone, and what
// lanes exchange of whole lines takes no registers beside the ring. And that no schedule of MXFP8 breaks its contract.
#include "gen/catalog/catalog.h"
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/decode/disassembler.h"
#include "runtime/build/build_kernel.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace split_product_tests {
using namespace kiln;

namespace {

BuiltKernel build(std::string_view arch, DType type, int m, int n, int k, const std::vector<std::string>& settings) {
  const KernelSpec spec = catalog_spec("gemm", {.dtype = type, .fp8 = target(arch).fp8(), .m = m, .n = n, .k = k});
  return build_kernel(spec, target(arch), own_process_options(process_environment()), settings);
}

// The fewest loads that a wait between the first 16-byte load and the first matrix instruction leaves under way.
int fewest_under_way(const BuiltKernel& built) {
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, built.source.name);
  isa::Disassembler disassembler(object.target());
  const isa::Program program = isa::build_program(object.kernel(built.source.name), disassembler);
  const auto first = std::ranges::find(program.instructions, "global_load_dwordx4", &isa::Instruction::mnemonic);
  int fewest = 63;
  for (auto i = first; i != program.instructions.end() && !i->mnemonic.starts_with("v_mfma_"); ++i)
    if (const auto counts = isa::wait_counts(*i); counts && counts->vmcnt) fewest = std::min(fewest, *counts->vmcnt);
  return fewest;
}

} // namespace

TEST_CASE("the first step of a split product waits for no other one's loads") {
  const std::vector<std::string> split{"tile_n=16", "loads=2", "stages=6", "workgroups=240"}; // a step has four loads
  CHECK(fewest_under_way(build("gfx942", f16, 16, 1280, 8192, split)) >= 20);
  CHECK(fewest_under_way(build("gfx950", e4m3fn, 16, 1280, 8192, split)) >= 20);
}

TEST_CASE("the ring of a split product lies in registers once") {
  const BuiltKernel built = build("gfx950", e4m3fn, 4, 1280, 16384, {"tile_n=16", "loads=2", "stages=11", "workgroups=240"});
  CHECK(built.facts.resources.vgprs <= 300); // 176 of the ring; 428 while LLVM kept what lanes had exchanged
}

TEST_CASE("MXFP8's first schedule keeps its contract") {
  for (const std::string_view arch : known_archs()) {
    const KernelSpec spec = catalog_spec("gemm_mx", {.mx = e4m3fn, .m = 4, .n = 5120, .k = 8192});
    CHECK(build_kernel(spec, target(arch), own_process_options(process_environment())).rejected.empty());
  }
}

} // namespace split_product_tests
