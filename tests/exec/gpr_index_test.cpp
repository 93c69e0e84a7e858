// VGPR index mode: which operands move, and that the sanitisers see the registers really used.
#include "tests/exec/lane_program.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace gpr_index_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

Lanes64 table(int k) {
  return each_lane([=](int i) { return static_cast<u32>(1000 * k + i); });
}
const std::vector<Lanes64> inputs = {table(1), table(2), table(3), table(4), table(5), table(6), table(7), table(8)}; // v1 to v8
LaneResult indexed(const std::string& body, int results = 4) {
  return run({.body = body, .inputs = inputs, .scalars = {0, 1, 2, 3, 4}, .results = results});
}
const std::string clear = "v_mov_b32 v64, 0\n v_mov_b32 v65, 0\n v_mov_b32 v66, 0\n v_mov_b32 v67, 0\n";

} // namespace

TEST_CASE("index mode: every choice of operands, with indices 0 to 4") {
  for (u32 index = 0; index <= 4; ++index)
    for (u32 which = 0; which < 16; ++which) {
      CAPTURE(index);
      CAPTURE(which);
      std::string names;
      for (u32 k = 0; k < 4; ++k)
        if ((which >> k & 1) != 0) names += fmt::format("{}{}", names.empty() ? "" : ",", std::array{"SRC0", "SRC1", "SRC2", "DST"}[k]);
      const LaneResult r = indexed(clear + fmt::format("v_mov_b32 v68, 0\n s_set_gpr_idx_on s{}, gpr_idx({})\n v_add3_u32 v64, v1, v2, "
                                                       "v3\n s_set_gpr_idx_off\n v_mov_b32 v69, v4",
                                                       16 + index, names),
                                   6);
      REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
      const auto at = [&](u32 bit) { return (which >> bit & 1) != 0 ? index : 0; };
      const u32 sum = 1000 * (1 + at(0) + 2 + at(1) + 3 + at(2));
      for (std::size_t i = 0; i < 64; ++i) {
        for (u32 k = 0; k < 5; ++k) CHECK(r.v[k][i] == (k == at(3) ? sum + 3 * i : 0U));
        CHECK(r.v[5][i] == 4000 + i); // off again
      }
    }
}

TEST_CASE("index mode: the index and the operands change while it is on; accumulating instructions move their destination") {
  const LaneResult r = indexed(clear + "s_set_gpr_idx_on s17, gpr_idx(SRC0)\n v_mov_b32 v64, v1\n s_set_gpr_idx_idx s19\n v_mov_b32 v65, "
                                       "v1\n s_set_gpr_idx_mode gpr_idx(DST)\n"
                                       "v_mov_b32 v63, v1\n s_set_gpr_idx_off\n v_mov_b32 v10, 0\n v_mov_b32 v67, 1.0\n v_mov_b32 v11, "
                                       "2.0\n s_set_gpr_idx_on s19, gpr_idx(DST)\n v_fmac_f32 v64, v11, v11\n s_set_gpr_idx_off");
  REQUIRE(r.run.defects.empty());
  CHECK(r.v[0] == table(2));
  CHECK(r.v[1] == table(4));
  CHECK(r.v[2] == table(1));
  CHECK(r.v[3][0] == as_bits(5.0F));
}

TEST_CASE("s_movrels and s_movreld count scalar registers from M0") {
  for (u32 index = 0; index <= 4; ++index) {
    const LaneResult r = indexed(
        fmt::format("s_mov_b32 s40, 11\n s_mov_b32 s41, 12\n s_mov_b64 s[42:43], 13\n s_mov_b64 s[44:45], 15\n s_mov_b32 m0, {}\n "
                    "s_movrels_b32 s50, s16\n s_mov_b32 m0, {}\n s_movrels_b64 s[52:53], s[16:17]\n"
                    "s_movreld_b32 s40, s18\n s_movreld_b64 s[42:43], s[18:19]\n v_mov_b32 v64, s50\n v_mov_b32 v65, s52\n v_mov_b32 v66, "
                    "s40\n v_mov_b32 v67, s41\n v_mov_b32 v68, s42\n v_mov_b32 v69, s43\n v_mov_b32 v70, s44\n v_mov_b32 v71, s45",
                    index, index / 2 * 2),
        8);
    REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
    const u32 even = index / 2 * 2;
    CHECK(r.v[0][0] == index);
    CHECK(r.v[1][0] == even);
    std::array<u32, 6> want{11, 12, 13, 0, 15, 0}; // s40 to s45
    want[even] = 2;
    if (even < 3) {
      want[2 + even] = 2;
      want[3 + even] = 3;
    }
    for (std::size_t k = 0; k < 6; ++k) CHECK(r.v[2 + k][0] == want[k]);
  }
}

TEST_CASE("index mode: sanitisers and limits") {
  const auto has = [](const LaneResult& r, DefectKind kind) {
    for (const Defect& f : r.run.defects)
      if (f.kind == kind) return true;
    return false;
  };
  // v20 was never written; it is reached through v1 + 19 only.
  CHECK(has(indexed("s_mov_b32 s40, 19\n s_set_gpr_idx_on s40, gpr_idx(SRC0)\n v_mov_b32 v64, v1\n s_set_gpr_idx_off", 1),
            DefectKind::uninitialised));
  CHECK(has(indexed("v_mov_b32 v20, 0\n global_load_dword v20, v255, s[4:5]\n s_mov_b32 s40, 19\n s_set_gpr_idx_on s40, gpr_idx(SRC0)\n "
                    "v_mov_b32 v64, v1\n s_set_gpr_idx_off\n s_waitcnt vmcnt(0)",
                    1),
            DefectKind::unwaited_register));
  CHECK(
      has(indexed("s_mov_b32 m0, 30\n s_movrels_b32 s50, s20\n v_mov_b32 v64, 0\n s_cmp_eq_u32 s50, 0\n s_cbranch_scc1 .Lend\n s_nop 0", 1),
          DefectKind::uninitialised)); // s50 itself
  CHECK(has(indexed("v_mov_b32 v64, 0\n s_mov_b32 m0, 90\n s_movreld_b32 s40, 0", 1), DefectKind::not_modelled));
  CHECK(has(indexed("s_mov_b32 s40, 200\n s_set_gpr_idx_on s40, gpr_idx(SRC0)\n v_mov_b32 v64, v100\n s_set_gpr_idx_off", 1),
            DefectKind::not_modelled));
}

} // namespace gpr_index_test
