// The hazard sanitiser: every pair of instructions is silent with the wait states that LLVM's hazard recogniser inserts between
// them (llc -run-pass post-RA-hazard-rec, LLVM 21, gives the numbers) and reported with one less.
#include "tests/exec/lane_program.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace hazard_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

struct HazardCase {
  const char *first, *second;
  int gfx942, gfx950; // wait states needed; -1: not an instruction of the architecture
};

constexpr HazardCase cases[] = {
    // scalar registers that vector instructions write
    {"v_readfirstlane_b32 s40, v1", "global_load_dword v9, v3, s[40:41]", 5, 5},
    {"v_readlane_b32 s40, v1, 3", "buffer_load_dword v9, off, s[40:43], 0", 5, 5},
    {"v_readfirstlane_b32 s40, v1", "v_readlane_b32 s44, v7, s40", 4, 4},
    {"v_readfirstlane_b32 s40, v1", "v_writelane_b32 v9, 5, s40", 4, 4},
    {"v_readfirstlane_b32 s40, v1", "v_add_u32 v9, s40, v3", 2, 2},
    {"v_readfirstlane_b32 s40, v1", "s_add_u32 s44, s40, 1", 0, 0},
    {"v_cmp_eq_u32 vcc, v1, v2", "v_cndmask_b32 v9, v3, v4, vcc", 2, 2},
    {"v_cmp_eq_u32 s[40:41], v1, v2", "v_cndmask_b32 v9, v3, v4, s[40:41]", 2, 2},
    {"v_add_co_u32 v9, vcc, v1, v2", "v_addc_co_u32 v10, vcc, v1, v2, vcc", 2, 2},
    {"v_cmp_eq_u32 vcc, v1, v2", "v_div_fmas_f32 v9, v10, v11, v12", 4, 4},
    {"v_div_scale_f32 v9, vcc, v1, v2, v1", "v_div_fmas_f32 v8, v10, v11, v12", 4, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_mov_b32_dpp v9, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 5, 5},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_readlane_b32 s44, v1, 3", 4, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_readfirstlane_b32 s44, v1", 4, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_writelane_b32 v9, s44, 3", 4, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_mfma_f32_16x16x16_f16 v[20:23], v[40:41], v[44:45], v[20:23]", 4, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_permlane16_swap_b32 v1, v9", -1, 4},
    {"v_cmpx_eq_u32 vcc, v1, v1", "v_add_u32 v9, v1, v3", 0, 0},
    // vector registers
    {"v_mov_b32 v1, v2", "v_readlane_b32 s44, v1, 3", 1, 1},
    {"v_mov_b32 v1, v2", "v_readfirstlane_b32 s44, v1", 1, 1},
    {"v_mov_b32 v1, v2", "v_mov_b32_dpp v9, v1 row_shr:1 row_mask:0xf bank_mask:0xf", 2, 2},
    {"v_mov_b32 v1, v2", "v_mfma_f32_16x16x16_f16 v[20:23], v[0:1], v[44:45], v[20:23]", 2, 2},
    {"v_accvgpr_write_b32 a1, v2", "v_mfma_f32_16x16x16_f16 a[20:23], a[0:1], v[44:45], a[20:23]", 2, 2},
    {"v_mov_b32 v1, v2", "v_permlane16_swap_b32 v1, v9", -1, 2},
    {"v_mov_b32 v1, v2", "v_add_u32 v9, v1, v3", 0, 0},
    {"v_mov_b32 v1, v2", "ds_read_b32 v9, v1", 0, 0},
    {"v_exp_f32 v1, v2", "v_add_u32 v9, v1, v3", 1, 1},
    {"v_rcp_f64 v[0:1], v[2:3]", "v_add_u32 v9, v1, v3", 1, 1},
    {"v_exp_f32 v1, v2", "v_exp_f32 v9, v1", 0, 0},
    {"v_exp_f32 v1, v2", "v_add_u32 v9, v4, v3", 0, 0},
    {"v_add_u16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", "v_add_u32 v9, v1, v3", 1, 1},
    {"v_add_u16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", "v_mov_b32 v1, v3", 1, 1},
    {"v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]", "v_add_u32 v9, v1, v3", 1, 1},
    {"v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,0]", "v_add_u32 v9, v1, v3", 1, 1},
    {"v_cvt_pk_fp8_f32 v1, v2, v3", "v_add_u32 v9, v1, v3", 0, 0},
    {"v_dot4_i32_i8 v1, v2, v3, v4", "v_add_u32 v9, v1, v3", 3, 3},
    {"v_dot4_i32_i8 v1, v2, v3, v4", "v_mov_b32 v1, v3", 3, 3},
    {"v_dot4_i32_i8 v1, v2, v3, v4", "v_dot4_i32_i8 v9, v1, v3, v4", 3, 3},
    {"v_dot4_i32_i8 v1, v2, v3, v4", "v_dot4_i32_i8 v9, v4, v3, v1", 0, 0},
    {"v_dot4_i32_i8 v1, v2, v3, v4", "ds_read_b32 v9, v1", 3, 3},
    // memory, M0, hardware registers
    {"global_store_dwordx4 v3, v[12:15], s[4:5]", "v_mov_b32 v13, v3", 2, 2},
    {"buffer_store_dwordx4 v[12:15], off, s[40:43], 0", "v_mov_b32 v13, v3", 2, 2},
    {"buffer_store_dwordx4 v[12:15], off, s[40:43], s44", "v_mov_b32 v13, v3", 1, 1}, // LLVM's main since May 2026; LLVM 21: 0
    {"global_store_dwordx2 v3, v[12:13], s[4:5]", "v_mov_b32 v13, v3", 0, 0},
    {"global_store_dwordx4 v3, v[12:15], s[4:5]", "v_mov_b32 v16, v3", 0, 0},
    {"s_mov_b32 m0, 0", "global_load_lds_dword v3, s[4:5]", 1, 1},
    {"s_mov_b32 m0, 0", "global_load_dword v9, v3, s[4:5]", 0, 0},
    {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0", "s_getreg_b32 s44, hwreg(HW_REG_MODE, 0, 2)", 2, 2},
    {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0", 2, 2},
    // f64 matrix instructions
    {"v_mfma_f64_16x16x4_f64 v[20:27], v[40:41], v[44:45], v[20:27]", "v_mov_b32 v9, v21", 11, 19},
    {"v_mfma_f64_16x16x4_f64 v[20:27], v[40:41], v[44:45], v[20:27]", "ds_read_b32 v9, v21", 18, 18},
    {"v_mfma_f64_16x16x4_f64 v[20:27], v[40:41], v[44:45], v[20:27]", "v_mov_b32 v21, v9", 11, 11},
    {"v_mfma_f64_16x16x4_f64 v[20:27], v[40:41], v[44:45], v[20:27]", "v_fma_f64 v[30:31], v[32:33], v[34:35], v[36:37]", 2, 2},
    {"v_mfma_f64_16x16x4_f64 v[20:27], v[40:41], v[44:45], v[20:27]", "v_mfma_f64_16x16x4_f64 v[22:29], v[40:41], v[44:45], v[22:29]", 9,
     17},
    {"v_mfma_f64_4x4x4_4b_f64 v[20:21], v[40:41], v[44:45], v[20:21]", "v_mov_b32 v9, v21", 6, 6},
    {"v_mfma_f64_4x4x4_4b_f64 v[20:21], v[40:41], v[44:45], v[20:21]", "ds_read_b32 v9, v21", 9, 9},
    {"v_mfma_f64_4x4x4_4b_f64 v[20:21], v[40:41], v[44:45], v[20:21]", "v_mfma_f64_4x4x4_4b_f64 v[20:21], v[40:41], v[44:45], v[20:21]", 4,
     4},
};

// Matrix instructions that write v[0:...]: the wait states before what follows, by architecture.
struct MatrixCase {
  const char* text;
  int read942, read950;               // VALU, memory or A and B of a matrix instruction read it; anything overwrites it
  int xdl942, xdl950, f32942, f32950; // C of an f16 or of an f32 matrix instruction overlaps it
  int same;                           // C of one with the same registers
};
constexpr MatrixCase matrices[] = {
    {"v_mfma_f32_4x4x4_16b_f16 v[0:3], v[40:41], v[44:45], v[0:3]", 5, 5, 3, 4, 3, 3, 2},
    {"v_mfma_f32_16x16x16_f16 v[0:3], v[40:41], v[44:45], v[0:3]", 7, 8, 5, 6, 5, 6, 0},
    {"v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[40:41], v[44:45], v[0:3]", 7, 8, 5, 6, 5, 6, 0},
    {"v_mfma_i32_16x16x32_i8 v[0:3], v[40:41], v[44:45], v[0:3]", 7, 8, 5, 6, 5, 6, 0},
    {"v_mfma_f32_16x16x32_f16 v[0:3], v[40:43], v[44:47], v[0:3]", -1, 8, -1, 6, -1, 6, 0},
    {"v_mfma_f32_32x32x8_f16 v[0:15], v[40:41], v[44:45], v[0:15]", 11, 12, 9, 10, 9, 10, 0},
    {"v_mfma_f32_16x16x4_4b_f16 v[0:15], v[40:41], v[44:45], v[0:15]", 11, 12, 9, 10, 9, 10, 0},
    {"v_mfma_f32_32x32x4_2b_f16 v[0:31], v[40:41], v[44:45], v[0:31]", 19, 20, 17, 18, 17, 18, 0},
    {"v_mfma_f32_4x4x1_16b_f32 v[0:3], v40, v44, v[0:3]", 4, 4, 0, 0, 2, 2, 2},
    {"v_mfma_f32_16x16x4_f32 v[0:3], v40, v44, v[0:3]", 10, 10, 0, 0, 8, 8, 0},
    {"v_mfma_f32_32x32x2_f32 v[0:15], v40, v44, v[0:15]", 18, 18, 0, 0, 16, 16, 0},
    {"v_smfmac_f32_16x16x32_f16 v[0:3], v[40:41], v[44:47], v50", 7, 8, 5, 6, 5, 6, 0},
    {"v_smfmac_f32_32x32x16_f16 v[0:15], v[40:41], v[44:47], v50", 11, 12, 9, 10, 9, 10, 0},
};

std::string wait_states(int n) {
  std::string text;
  for (; n > 16; n -= 16) text += "  s_nop 15\n";
  return n > 0 ? text + fmt::format("  s_nop {}\n", n - 1) : text;
}

std::vector<Defect> hazards(const std::string& first, const std::string& second, int states, const char* arch) {
  const std::string body = "  s_nop 15\n  s_nop 15\n  " + first + "\n" + wait_states(states) + "  " + second +
                           "\n  s_nop 15\n  s_nop 15\n  s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_mov_b64 exec, -1\n";
  auto found =
      run({.body = body, .inputs = {Lanes64{}}, .results = 0, .lds_bytes = 4096, .accumulation = true, .arch = arch, .check_hazards = true},
          {.check_waits = false, .check_undefined = false})
          .run.defects;
  std::erase_if(found, [](const Defect& f) { return f.kind != DefectKind::hazard; });
  return found;
}

void check_pair(const std::string& first, const std::string& second, int needed, const char* arch) {
  if (needed < 0) return;
  CAPTURE(first);
  CAPTURE(second);
  CAPTURE(needed);
  CAPTURE(std::string(arch));
  CHECK(hazards(first, second, needed, arch).empty());
  if (needed > 0) CHECK(hazards(first, second, needed - 1, arch).size() == 1);
}

} // namespace

TEST_CASE("hazards: pairs of instructions are silent with the wait states of LLVM, and reported with one less") {
  for (const HazardCase& c : cases) {
    check_pair(c.first, c.second, c.gfx942, "gfx942");
    check_pair(c.first, c.second, c.gfx950, "gfx950");
  }
}

TEST_CASE("hazards: what follows matrix instructions") {
  for (const MatrixCase& m : matrices)
    for (const bool newer : {false, true}) {
      const char* const arch = newer ? "gfx950" : "gfx942";
      const int read = newer ? m.read950 : m.read942, xdl = newer ? m.xdl950 : m.xdl942, f32 = newer ? m.f32950 : m.f32942;
      check_pair(m.text, "v_mov_b32 v60, v1", read, arch);
      check_pair(m.text, "global_store_dword v1, v60, s[4:5]", read, arch);
      check_pair(m.text, "v_mov_b32 v1, v60", read, arch);
      check_pair(m.text, "ds_read_b32 v1, v60", read, arch);
      check_pair(m.text, "v_mfma_f32_16x16x16_f16 v[60:63], v[0:1], v[44:45], v[60:63]", read, arch);
      check_pair(m.text, "v_mfma_f32_16x16x16_f16 v[60:63], v[40:41], v[44:45], v[2:5]", xdl, arch);
      check_pair(m.text, "v_mfma_f32_16x16x4_f32 v[60:63], v40, v44, v[2:5]", f32, arch);
      if (read >= 0) check_pair(m.text, m.text, m.same, arch);
    }
}

TEST_CASE("hazards: a matrix result that another one overwrote since does not count") {
  const std::string first = "v_mfma_f32_16x16x16_f16 v[0:3], v[40:41], v[44:45], 0",
                    second = "v_mfma_f32_16x16x16_f16 v[2:5], v[40:41], v[44:45], 0";
  const std::string third = "v_mfma_f32_16x16x16_f16 v[2:5], v[40:41], v[44:45], v[2:5]";
  CHECK(hazards(first + "\n" + second, third, 0, "gfx942").empty());
  CHECK(hazards(first, third, 0, "gfx942").size() == 1);
  CHECK(hazards(first + "\n" + second, "v_mov_b32 v60, v1", 0, "gfx942").size() == 1); // v1 is still the first one's
}

TEST_CASE("hazards: a matrix instruction issues after the passes of the one before") {
  const std::string first = "v_mfma_f32_16x16x16_f16 v[0:3], v[40:41], v[44:45], 0", reader = "v_mov_b32 v60, v1";
  const std::string other = "\n  v_mfma_f32_16x16x16_f16 v[4:7], v[40:41], v[44:45], 0"; // issues 4 states after the first
  CHECK(hazards(first + other, reader, 3, "gfx942").empty());                            // 4 + 3 of 7
  CHECK(hazards(first + other, reader, 2, "gfx942").size() == 1);
  CHECK(hazards(first + other + other, reader, 0, "gfx942").empty()); // 8 of 7
}

TEST_CASE("hazards: wait states are counted along the path that is taken, and other instructions count too") {
  const std::string first = "v_readfirstlane_b32 s40, v1", second = "global_load_dword v9, v3, s[40:41]";
  CHECK(hazards(first + "\n s_mov_b32 s41, 0\n s_branch far\n s_nop 4\nfar:\n s_mov_b32 s44, 0", second, 2, "gfx942").empty());
  const auto found = hazards(first + "\n s_mov_b32 s41, 0\n s_branch far\n s_nop 4\nfar:\n s_mov_b32 s44, 0", second, 1, "gfx942");
  REQUIRE(found.size() == 1);
  CHECK(found[0].message.find("accesses memory through a scalar register that a vector instruction writes, 4 wait states after "
                              "`v_readfirstlane_b32 s40, v1`") == 0);
  CHECK(found[0].message.ends_with("the hardware needs 5"));
}

} // namespace hazard_test
