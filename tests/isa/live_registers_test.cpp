// Live vector registers: along straight code, over loops and branches, at the peak, in both files.
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/analysis/live_registers.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>

namespace live_registers_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

LiveRegisters live(const std::string& body) {
  const CodeObject object = assemble_kernel(body, "gfx942", {.vgprs = 64, .accum_offset = 32});
  const KernelAnalysis k = analyse(object, object.kernel("k"));
  return live_registers(k.program);
}

std::vector<int> counts(const LiveRegisters& l) {
  std::vector<int> result;
  for (const LiveCount& c : l.before) result.push_back(c.all());
  return result;
}

} // namespace

TEST_CASE("a value lives from its write to its last read") {
  const LiveRegisters l = live("v_mov_b32_e32 v1, v0\n v_add_f32_e32 v2, v1, v0\n v_mov_b32_e32 v3, 0\n global_store_dword v2, v3, s[0:1]");
  CHECK(counts(l) == std::vector<int>{1, 2, 1, 2, 0}); // s_endpgm last
  CHECK(l.peak == 1);
  REQUIRE(l.values.size() == 2);
  CHECK(l.values[0].registers == 1);
}

TEST_CASE("what a loop's next repetition reads lives through the whole of it") {
  const LiveRegisters l = live("again:\n v_add_f32_e32 v1, v2, v1\n v_nop\n s_cbranch_scc1 again\n global_store_dword v0, v1, s[0:1]");
  CHECK(counts(l) == std::vector<int>{3, 3, 3, 2, 0}); // v0, v1 and v2
}

TEST_CASE("accumulation registers count apart, and values are named by their writers") {
  const LiveRegisters l =
      live("v_accvgpr_write_b32 a0, 0\n v_accvgpr_write_b32 a1, 0\n v_accvgpr_write_b32 a2, 0\n v_accvgpr_write_b32 a3, 0\n"
           "v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[6:7], a[0:3]\n global_store_dwordx4 v0, a[0:3], s[0:1]");
  REQUIRE(l.peak != nothing);
  CHECK(l.peak == 4);
  CHECK(l.before[l.peak].accumulation == 4);
  CHECK(l.before[l.peak].arch == 5); // v0 and the operands
  REQUIRE(l.values.size() == 2);
  CHECK(l.values[0].writer.empty()); // nothing wrote them
  CHECK(l.values[0].names == "v0, v[4:7]");
  CHECK(l.values[1].writer == "v_accvgpr_write_b32");
  CHECK(l.values[1].names == "a[0:3]");
}

} // namespace live_registers_test
