// HAZ002 on a few lines of assembly: each entry of the hazard table, and what counts between producer and consumer.
#include "isa_checks/verdict/lint.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>
#include <optional>

namespace hazard_rules_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

std::vector<Finding> hazards(const std::string& body, const char* arch = "gfx942") {
  const CodeObject object = assemble_kernel(body, arch, wide);
  return lint(analyse(object, object.kernel("k")), {.only = {"HAZ002", "DAT004"}});
}
bool reported(const std::string& body, const char* arch = "gfx942") { return !hazards(body, arch).empty(); }

} // namespace

TEST_CASE("HAZ002: each entry of the table, one state too few and just enough") {
  struct Hazard {
    const char *producer, *consumer;
    int states;
    const char* arch = "gfx942";
  };
  for (const Hazard& h :
       {Hazard{"v_readfirstlane_b32 s8, v1", "global_load_dword v0, v4, s[8:9]", 5},
        Hazard{"v_mov_b32_e32 v1, v2", "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2},
        Hazard{"v_cmp_gt_f32_e32 vcc, v0, v1", "v_div_fmas_f32 v2, v3, v4, v5", 4},
        Hazard{"v_exp_f32_e32 v0, v1", "v_mul_f32_e32 v2, v0, v0", 1}, Hazard{"v_readfirstlane_b32 s8, v1", "v_readlane_b32 s9, v2, s8", 4},
        Hazard{"v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]", "v_add_f32_e32 v12, v0, v1", 7},
        Hazard{"v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]", "v_add_f32_e32 v12, v0, v1", 8, "gfx950"},
        Hazard{"v_mfma_f32_32x32x8_f16 v[16:31], v[8:9], v[10:11], v[16:31]", "global_store_dword v4, v16, s[2:3]", 11},
        Hazard{"v_mfma_f32_4x4x4_16b_f16 v[0:3], v[8:9], v[10:11], v[0:3]", "v_mfma_f32_4x4x4_16b_f16 v[4:7], v[0:1], v[10:11], v[4:7]", 5},
        // CDNA2, which has its own column: LLVM's numbers, those of AMD's MI200 manual ("Manually Inserted Wait States").
        Hazard{"v_mfma_f32_16x16x16f16 v[0:3], v[8:9], v[10:11], v[0:3]", "v_add_f32_e32 v12, v0, v1", 11, "gfx90a"},
        Hazard{"v_mfma_f32_32x32x8f16 v[16:31], v[8:9], v[10:11], v[16:31]", "global_store_dword v4, v16, s[2:3]", 19, "gfx90a"},
        Hazard{"v_mfma_f32_4x4x4f16 v[0:3], v[8:9], v[10:11], v[0:3]", "v_add_f32_e32 v12, v0, v1", 5, "gfx90a"},
        Hazard{"v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]", "v_add_f32_e32 v12, v0, v1", 11, "gfx90a"},
        Hazard{"v_readfirstlane_b32 s8, v1", "global_load_dword v0, v4, s[8:9]", 5, "gfx90a"},
        Hazard{"v_mov_b32_e32 v1, v2", "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2, "gfx90a"},
        Hazard{"v_cmp_gt_f32_e32 vcc, v0, v1", "v_div_fmas_f32 v2, v3, v4, v5", 4, "gfx90a"},
        Hazard{"global_store_dwordx4 v4, v[8:11], s[2:3]", "v_mov_b32_e32 v9, v2", 1, "gfx90a"},
        Hazard{"global_store_dwordx4 v4, v[8:11], s[2:3]", "v_mov_b32_e32 v9, v2", 2}}) {
    CAPTURE(h.producer);
    const auto with = [&](int states) { return std::string(h.producer) + "\n" + times(states, "s_nop 0") + h.consumer; };
    CHECK(reported(with(h.states - 1), h.arch));
    CHECK_FALSE(reported(with(h.states), h.arch));
    if (h.states <= 16) // s_nop can wait no more
      CHECK_FALSE(reported(std::string(h.producer) + "\n s_nop " + std::to_string(h.states - 1) + "\n" + h.consumer, h.arch));
  }
  for (const char* pair : {"v_exp_f32_e32 v0, v1\n v_mul_f32_e32 v2, v0, v0", "v_mov_b32_e32 v1, v2\n v_readfirstlane_b32 s8, v1"})
    CHECK_FALSE(reported(pair, "gfx90a")); // hazards of CDNA3 alone
  // Accumulation onto the same registers is forwarded.
  CHECK_FALSE(reported(times(2, "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], v[0:3]")));
  // Over the back edge only the branch lies between.
  CHECK(reported(loop("global_load_dword v0, v4, s[8:9]\n" + times(4, "v_nop") + "v_readfirstlane_b32 s8, v1")));
}

TEST_CASE("HAZ002: what lies between counts with the time that it takes at least") {
  const std::string first = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], 0\n ", reader = "v_add_f32_e32 v12, v0, v1"; // 7 states
  const std::string other = "v_mfma_f32_16x16x16_f16 v[4:7], v[8:9], v[10:11], 0\n ";
  // A matrix instruction issues after the 4 passes of the one before.
  CHECK(reported(first + other + times(2, "s_nop 0") + reader));
  CHECK_FALSE(reported(first + other + times(3, "s_nop 0") + reader));
  CHECK_FALSE(reported(first + other + other + reader));
  // A wait for a load that was issued between takes longer than any hazard; other waits and barriers may pass at once.
  CHECK_FALSE(reported(first + "global_load_dword v20, v4, s[2:3]\n s_waitcnt vmcnt(0)\n " + reader));
  CHECK(reported("global_load_dword v20, v4, s[2:3]\n " + first + "s_waitcnt vmcnt(0)\n " + reader));
  CHECK(reported(first + "s_barrier\n " + reader));
  const std::string written = "v_mov_b32_e32 v1, v2\n ", permuted = "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf";
  CHECK(reported(written + permuted));
  CHECK_FALSE(reported(written + "s_barrier\n " + permuted)); // but waves take longer to meet than a register to be written
  // A result that another matrix instruction overwrote is gone; what it left is not.
  const std::string over = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], 0\n ";
  CHECK_FALSE(reported(first + over + times(7, "s_nop 0") + reader));
  CHECK(reported(first + over + times(2, "s_nop 0") + reader));
  // Behind a taken s_cbranch_execz no lane is on: only what does not ask EXEC can meet a hazard, until EXEC is written.
  const std::string around = " behind\n s_nop 15\n behind:\n ", on = "s_mov_b64 exec, -1\n ";
  CHECK_FALSE(reported(first + "s_cbranch_execz" + around + reader));
  CHECK(reported(first + "s_cbranch_scc0" + around + reader));
  CHECK(reported(first + "s_cbranch_execz" + around + on + reader));
  CHECK(reported(first + "s_cbranch_execz" + around + "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[10:11], 0"));
  CHECK(reported(first + "s_cbranch_execz" + around + "v_readfirstlane_b32 s8, v1"));
}

TEST_CASE("HAZ002: severity follows what is known about the pair") {
  const auto severity = [](const std::string& text) {
    const auto findings = hazards(text);
    return findings.empty() ? std::nullopt : std::optional(findings[0].severity);
  };
  CHECK(severity("v_readfirstlane_b32 s8, v1\n global_load_dword v0, v4, s[8:9]") == Severity::error);
  // LLVM's table alone, and kernels that ship undercut it.
  const std::string result = "v_mfma_f32_16x16x16_f16 v[0:3], v[8:9], v[10:11], 0\n ", reader = "v_add_f32_e32 v12, v0, v1";
  CHECK(severity(result + "s_nop 1\n" + reader) == Severity::info);
  // But none of them leaves fewer than two states behind a matrix instruction.
  CHECK(severity(result + "s_nop 0\n" + reader) == Severity::error);
  CHECK(severity(result + reader) == Severity::error);
  const std::string operand = "v_mov_b32_e32 v8, v2\n ";
  CHECK(severity(operand + result) == Severity::warning);
  CHECK(severity(operand + "s_nop 0\n" + result) == Severity::info);
  // Shipped kernels leave these out throughout: not reported.
  CHECK_FALSE(severity("s_add_u32 m0, s4, 16\n global_load_lds_dword v0, s[2:3]"));
  CHECK_FALSE(severity("v_readfirstlane_b32 s8, v1\n v_add_u32_e32 v0, s8, v2"));
}

TEST_CASE("HAZ002: places of one cause and loop are one finding, which shows the worst of them") {
  const std::string once = "v_mov_b32_e32 v1, v2\n s_nop 0\n v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf\n",
                    worse = "v_mov_b32_e32 v3, v2\n v_mov_b32_dpp v0, v3 row_shr:1 row_mask:0xf bank_mask:0xf\n";
  const auto findings = hazards(loop(once + worse + once));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].message.starts_with("permutes it 0 wait states after "));
  CHECK(findings[0].message.ends_with("; 3 such places in the loop"));
}

} // namespace hazard_rules_test
