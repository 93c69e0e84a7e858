// How vector instructions read and write operands: constants, signs, halves, SDWA, DPP, EXEC, carries, output modifiers.
#include "tests/exec/lane_program.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace operand_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

const Lanes64 ids = each_lane([](int i) { return static_cast<u32>(i); });
const Lanes64 words = each_lane([](int i) { return 0x80a17f31U * static_cast<u32>(i + 1); });

u32 one(const std::string& body, const char* arch = "gfx942") {
  const LaneResult r = run({.body = body, .inputs = {words}, .scalars = {0x12345678, 5, 0xffffffff}, .arch = arch});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  return r.v[0][5];
}

// v64 = v1 moved by a DPP control over a register of all ones.
Lanes64 moved(const std::string& control) {
  const LaneResult r = run({.body = "v_mov_b32 v64, -1\n s_nop 1\n v_mov_b32_dpp v64, v1 " + control, .inputs = {ids}});
  REQUIRE(r.run.defects.empty());
  return r.v[0];
}

} // namespace

TEST_CASE("constants are read as the operand's type") {
  CHECK(one("v_mov_b32 v64, 64") == 64);
  CHECK(one("v_mov_b32 v64, -16") == 0xfffffff0U);
  CHECK(one("v_mov_b32 v64, 0.5") == 0x3f000000U);
  CHECK(one("v_mov_b32 v64, 0.15915494") == 0x3e22f983U);
  CHECK(one("v_mov_b32 v64, 0xdeadbeef") == 0xdeadbeefU);
  CHECK(one("v_mov_b32 v10, 0\n v_add_f16 v64, v10, 2.0") == 0x4000U);
  CHECK(one("v_mov_b32 v10, 0\n v_add_u16 v64, v10, 7") == 7U);
  CHECK(one("v_mov_b32 v10, 0x3c003c00\n v_pk_add_f16 v64, v10, 1.0") == 0x3c004000U); // the high half of the constant is 0
  CHECK(one("v_mov_b32 v10, 0x3c003c00\n v_pk_add_f16 v64, v10, 1.0 op_sel_hi:[1,0]") == 0x40004000U);
  CHECK(one("v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n v_add_f64 v[10:11], v[10:11], 1.0\n v_mov_b32 v64, v11") == 0x3ff00000U);
  CHECK(one("v_mov_b32 v64, s16") == 0x12345678U);
  CHECK(one("s_mov_b64 vcc, 5\n v_mov_b32 v64, vcc_lo") == 5U);
  CHECK(one("v_mov_b32 v10, 3.0\n v_fmaak_f32 v64, v10, v10, 0x40000000") == as_bits(11.0F));
  CHECK(one("v_mov_b32 v10, 3.0\n v_fmamk_f32 v64, v10, 0x40000000, v10") == as_bits(9.0F));
}

TEST_CASE("signs: absolute value first, then negation") {
  CHECK(one("v_mov_b32 v10, -3.0\n v_add_f32_e64 v64, -v10, 0") == as_bits(3.0F));
  CHECK(one("v_mov_b32 v10, -3.0\n v_add_f32_e64 v64, |v10|, 0") == as_bits(3.0F));
  CHECK(one("v_mov_b32 v10, -3.0\n v_add_f32_e64 v64, -|v10|, 0") == as_bits(-3.0F));
  CHECK(one("v_mov_b32 v10, 0x3c00c000\n v_mov_b32 v11, 0\n v_pk_add_f16 v64, v10, v11 neg_lo:[1,0]") == 0x3c004000U);
  CHECK(one("v_mov_b32 v10, 0x3c00c000\n v_mov_b32 v11, 0\n v_pk_add_f16 v64, v10, v11 neg_hi:[1,0]") == 0xbc00c000U);
  CHECK(one("v_mov_b32 v10, 1.0\n v_mov_b32 v11, 2.0\n s_mov_b64 vcc, -1\n s_nop 4\n v_cndmask_b32_e64 v64, v10, -v11, vcc") ==
        as_bits(-2.0F));
}

TEST_CASE("op_sel chooses halves of sources and of the destination") {
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_mov_b32 v64, 0xabcd1234\n v_fma_f16 v64, v10, v10, v10") == 0xabcd4000U);
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_mov_b32 v64, 0xabcd1234\n v_fma_f16 v64, v10, v10, v10 op_sel:[1,0,1,1]") == 0x44001234U);
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_pack_b32_f16 v64, v10, v10 op_sel:[1,0,0]") == 0x3c004000U);
  CHECK(one("v_mov_b32 v10, 0x00070005\n v_mov_b32 v11, 0x00100020\n v_pk_add_u16 v64, v10, v11 op_sel:[1,0] op_sel_hi:[0,1]") ==
        0x00150027U);
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_mov_b32 v11, 3.0\n v_fma_mix_f32 v64, v10, v11, v10 op_sel:[1,0,0] op_sel_hi:[1,0,1]") ==
        as_bits(7.0F));
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_mov_b32 v11, 3.0\n v_mov_b32 v64, 0xabcd1234\n v_fma_mixhi_f16 v64, v10, v11, v10 "
            "op_sel:[1,0,0] op_sel_hi:[1,0,1]") == 0x47001234U);
  CHECK(one("v_mov_b32 v10, 1.0\n v_mov_b32 v11, 2.0\n v_pk_add_f32 v[20:21], v[10:11], v[10:11] op_sel:[1,0] op_sel_hi:[1,0]\n v_mul_f32 "
            "v64, v20, v21") == as_bits(9.0F));
}

TEST_CASE("16-bit results clear the upper half") {
  CHECK(one("v_mov_b32 v64, -1\n v_mov_b32 v10, 1.0\n v_cvt_f16_f32 v64, v10") == 0x3c00U);
  CHECK(one("v_mov_b32 v64, -1\n v_mov_b32 v10, 5\n v_add_u16 v64, v10, v10") == 10U);
}

TEST_CASE("SDWA: bytes and words in, bytes and words out") {
  const std::string value = "v_mov_b32 v10, 0x84c2f0a1\n v_mov_b32 v11, 0\n v_mov_b32 v64, 0x11223344\n";
  CHECK(one(value + "v_add_u32_sdwa v64, v10, v11 dst_sel:DWORD src0_sel:BYTE_2 src1_sel:DWORD") == 0xc2U);
  CHECK(one(value + "v_add_u32_sdwa v64, sext(v10), v11 dst_sel:DWORD src0_sel:BYTE_3 src1_sel:DWORD") == 0xffffff84U);
  CHECK(one(value + "v_add_u32_sdwa v64, sext(v10), v11 dst_sel:DWORD src0_sel:WORD_0 src1_sel:DWORD") == 0xfffff0a1U);
  CHECK(one(value + "v_add_u32_sdwa v64, v10, v11 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:DWORD") ==
        0x1122a144U);
  CHECK(one(value + "v_add_u32_sdwa v64, v10, v11 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:DWORD") == 0xf0a10000U);
  CHECK(one(value + "v_add_u32_sdwa v64, v10, v11 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_0 src1_sel:DWORD") == 0xffffa100U);
  CHECK(one("v_mov_b32 v10, 0x40003c00\n v_cvt_f32_f16_sdwa v64, v10 dst_sel:DWORD src0_sel:WORD_1") == as_bits(2.0F));
  CHECK(one("v_mov_b32 v10, 0x4000bc00\n v_mul_f16_sdwa v64, -v10, |v10| dst_sel:DWORD src0_sel:WORD_1 src1_sel:WORD_0") == 0xc000U);
  CHECK(one("v_mov_b32 v10, 0x00ff0000\n v_mov_b32 v11, 0xff\n v_cmp_eq_u32_sdwa vcc, v10, v11 src0_sel:WORD_1 src1_sel:DWORD\n s_nop 4\n "
            "v_cndmask_b32 v64, 0, 1, vcc") == 1U);
}

TEST_CASE("DPP: where each lane reads") {
  const auto all = "row_mask:0xf bank_mask:0xf";
  const auto check = [&](const std::string& control, auto source) {
    CAPTURE(control);
    const Lanes64 kept = moved(control + " " + all), zeroed = moved(control + " " + all + std::string(" bound_ctrl:0"));
    for (int i = 0; i < 64; ++i) {
      const int from = source(i);
      CHECK(kept[static_cast<std::size_t>(i)] == (from < 0 ? 0xffffffffU : static_cast<u32>(from)));
      CHECK(zeroed[static_cast<std::size_t>(i)] == (from < 0 ? 0U : static_cast<u32>(from)));
    }
  };
  check("quad_perm:[1,3,0,2]", [](int i) { return i - i % 4 + std::array{1, 3, 0, 2}[static_cast<std::size_t>(i % 4)]; });
  check("row_shl:3", [](int i) { return i % 16 + 3 < 16 ? i + 3 : -1; });
  check("row_shr:5", [](int i) { return i % 16 >= 5 ? i - 5 : -1; });
  check("row_ror:6", [](int i) { return i / 16 * 16 + (i % 16 + 10) % 16; });
  check("row_mirror", [](int i) { return i / 16 * 16 + 15 - i % 16; });
  check("row_half_mirror", [](int i) { return i / 8 * 8 + 7 - i % 8; });
  check("wave_shl:1", [](int i) { return i < 63 ? i + 1 : -1; });
  check("wave_shr:1", [](int i) { return i - 1; });
  check("wave_rol:1", [](int i) { return (i + 1) % 64; });
  check("wave_ror:1", [](int i) { return (i + 63) % 64; });
  check("row_bcast:15", [](int i) { return i < 16 ? -1 : i / 16 * 16 - 1; });
  check("row_bcast:31", [](int i) { return i < 32 ? -1 : 31; });
  check("row_newbcast:9", [](int i) { return i / 16 * 16 + 9; });
}

TEST_CASE("DPP: masks switch rows and banks off, inactive source lanes count as absent") {
  const Lanes64 masked = moved("row_mirror row_mask:0x5 bank_mask:0x9");
  for (int i = 0; i < 64; ++i) {
    const bool on = i / 16 % 2 == 0 && (i % 16 < 4 || i % 16 >= 12);
    CHECK(masked[static_cast<std::size_t>(i)] == (on ? static_cast<u32>(i / 16 * 16 + 15 - i % 16) : 0xffffffffU));
  }
  const LaneResult r =
      run({.body = "v_mov_b32 v64, -1\n s_mov_b64 exec, 0xff\n s_nop 4\n v_mov_b32_dpp v64, v1 row_shl:4 row_mask:0xf bank_mask:0xf",
           .inputs = {ids}});
  for (int i = 0; i < 64; ++i) CHECK(r.v[0][static_cast<std::size_t>(i)] == (i < 4 ? static_cast<u32>(i + 4) : 0xffffffffU));
}

TEST_CASE("EXEC: inactive lanes keep their value, comparisons give 0 there") {
  const LaneResult r =
      run({.body = "v_mov_b32 v64, 9\n v_mov_b32 v65, 9\n s_mov_b64 vcc, -1\n s_mov_b32 exec_lo, 0x0f0f0f0f\n s_mov_b32 exec_hi, 0xff\n"
                   "v_mov_b32 v64, v1\n v_cmp_ge_u32 vcc, v1, v1\n s_mov_b64 exec, -1\n s_nop 4\n v_cndmask_b32 v65, 0, 1, vcc",
           .inputs = {ids},
           .results = 2});
  for (int i = 0; i < 64; ++i) {
    const bool on = i < 32 ? i % 8 < 4 : i < 40;
    CHECK(r.v[0][static_cast<std::size_t>(i)] == (on ? static_cast<u32>(i) : 9U));
    CHECK(r.v[1][static_cast<std::size_t>(i)] == (on ? 1U : 0U));
  }
}

TEST_CASE("v_cmpx narrows EXEC; carries chain through VCC and through any pair") {
  const LaneResult r = run({.body = "v_mov_b32 v64, 0\n v_mov_b32 v65, -1\n v_add_co_u32 v66, s[40:41], v65, v1\n s_nop 4\n v_addc_co_u32 "
                                    "v67, vcc, 0, v64, s[40:41]\n"
                                    "v_cmpx_gt_u32 vcc, 20, v1\n s_nop 4\n v_mov_b32 v64, 1",
                            .inputs = {ids},
                            .results = 4});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == (i < 20 ? 1U : 0U));
    CHECK(r.v[2][i] == static_cast<u32>(i) - 1);
    CHECK(r.v[3][i] == (i > 0 ? 1U : 0U));
  }
}

TEST_CASE("output modifiers: multiply, then clamp; integers saturate") {
  CHECK(one("v_mov_b32 v10, 0.5\n v_add_f32_e64 v64, v10, v10 clamp") == as_bits(1.0F));
  CHECK(one("v_mov_b32 v10, 4.0\n v_add_f32_e64 v64, v10, v10 clamp") == as_bits(1.0F));
  CHECK(one("v_mov_b32 v10, -4.0\n v_add_f32_e64 v64, v10, v10 clamp") == 0U);
  CHECK(one("v_mov_b32 v10, 4.0\n v_add_f32_e64 v64, v10, v10 mul:4") == as_bits(32.0F));
  CHECK(one("v_mov_b32 v10, 4.0\n v_add_f32_e64 v64, v10, v10 div:2") == as_bits(4.0F));
  CHECK(one("v_mov_b32 v10, -1\n v_add_u32_e64 v64, v10, v10 clamp") == 0xffffffffU);
  CHECK(one("v_mov_b32 v10, 3\n v_mov_b32 v11, 5\n v_sub_u32_e64 v64, v10, v11 clamp") == 0U);
  CHECK(one("v_mov_b32 v10, 0x7fff8000\n v_pk_add_i16 v64, v10, v10 clamp") == 0x7fff8000U);
}

TEST_CASE("lanes and scalars: readlane, readfirstlane, writelane, mbcnt") {
  CHECK(one("v_readlane_b32 s40, v1, 9\n s_nop 4\n v_mov_b32 v64, s40") == words[9]);
  CHECK(one("s_mov_b64 exec, 0xf00\n s_nop 4\n v_readfirstlane_b32 s40, v1\n s_mov_b64 exec, -1\n s_nop 4\n v_mov_b32 v64, s40") ==
        words[8]);
  CHECK(one("v_mov_b32 v64, 1\n v_writelane_b32 v64, s16, 5") == 0x12345678U);
  const LaneResult r = run({.body = "v_mbcnt_lo_u32_b32 v64, -1, 0\n v_mbcnt_hi_u32_b32 v64, -1, v64", .inputs = {}});
  CHECK(r.v[0] == ids);
}

TEST_CASE("gfx950: row swaps exchange odd rows of one register with even rows of the other") {
  const Lanes64 other = each_lane([](int i) { return static_cast<u32>(100 + i); });
  const LaneResult r = run({.body = "v_mov_b32 v64, v1\n v_mov_b32 v65, v2\n v_mov_b32 v66, v1\n v_mov_b32 v67, v2\n s_nop 1\n "
                                    "v_permlane16_swap_b32 v64, v65\n v_permlane32_swap_b32 v66, v67",
                            .inputs = {ids, other},
                            .results = 4,
                            .arch = "gfx950"});
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(r.v[0][i] == (i / 16 % 2 == 1 ? 100 + i - 16 : i));
    CHECK(r.v[1][i] == (i / 16 % 2 == 0 ? i + 16 : 100 + i));
    CHECK(r.v[2][i] == (i >= 32 ? 100 + i - 32 : i));
    CHECK(r.v[3][i] == (i < 32 ? i + 32 : 100 + i));
  }
}

TEST_CASE("accumulation registers: written, moved, read under EXEC") {
  const LaneResult r =
      run({.body = "v_accvgpr_write_b32 a5, v1\n v_accvgpr_write_b32 a6, 7\n s_mov_b64 exec, 0xff00\n s_nop 4\n v_accvgpr_mov_b32 a6, a5\n "
                   "s_mov_b64 exec, -1\n s_nop 4\n v_accvgpr_read_b32 v64, a6\n v_accvgpr_read_b32 v65, a5",
           .inputs = {words},
           .results = 2,
           .accumulation = true});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  for (std::size_t i = 0; i < 64; ++i) CHECK(r.v[0][i] == (i >= 8 && i < 16 ? words[i] : 7U));
  CHECK(r.v[1] == words);
}

} // namespace operand_test
