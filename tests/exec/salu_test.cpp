// Scalar instructions, branches and waves.
#include "tests/exec/lane_program.h"
#include <bit>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace salu_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Scalars {
  u32 low, high;
  bool scc;
};
// Runs one instruction on s16 and s17 (or s[16:17] and s[18:19]); the result is s40 or s[40:41].
Scalars scalar(const std::string& instruction, std::vector<u32> inputs, bool scc = false) {
  const std::string body = fmt::format("s_mov_b64 s[40:41], 0\n s_cmp_eq_u32 0, {}\n {}\n s_cselect_b32 s42, 1, 0\n v_mov_b32 v64, s40\n "
                                       "v_mov_b32 v65, s41\n v_mov_b32 v66, s42",
                                       scc ? 0 : 1, instruction);
  const LaneResult r = run({.body = body, .scalars = std::move(inputs), .results = 3});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  return {r.v[0][0], r.v[1][0], r.v[2][0] != 0};
}

} // namespace

TEST_CASE("scalar arithmetic: results and SCC") {
  for (const u32 a : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 12345U})
    for (const u32 b : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 77U}) {
      CAPTURE(a);
      CAPTURE(b);
      const auto sa = static_cast<std::int64_t>(static_cast<std::int32_t>(a)), sb = static_cast<std::int64_t>(static_cast<std::int32_t>(b));
      const auto fits = [](std::int64_t x) { return x >= -(1LL << 31) && x < (1LL << 31); };
      Scalars r = scalar("s_add_u32 s40, s16, s17", {a, b});
      CHECK(r.low == a + b);
      CHECK(r.scc == (u64{a} + b > 0xffffffffULL));
      r = scalar("s_sub_u32 s40, s16, s17", {a, b});
      CHECK(r.low == a - b);
      CHECK(r.scc == (b > a));
      r = scalar("s_add_i32 s40, s16, s17", {a, b});
      CHECK(r.scc == !fits(sa + sb));
      r = scalar("s_sub_i32 s40, s16, s17", {a, b});
      CHECK(r.scc == !fits(sa - sb));
      r = scalar("s_addc_u32 s40, s16, s17", {a, b}, true);
      CHECK(r.low == a + b + 1);
      CHECK(r.scc == (u64{a} + b + 1 > 0xffffffffULL));
      r = scalar("s_subb_u32 s40, s16, s17", {a, b}, true);
      CHECK(r.low == a - b - 1);
      CHECK(r.scc == (u64{b} + 1 > a));
      CHECK(scalar("s_mul_hi_u32 s40, s16, s17", {a, b}).low == static_cast<u32>(u64{a} * b >> 32));
      CHECK(scalar("s_mul_hi_i32 s40, s16, s17", {a, b}).low == static_cast<u32>((sa * sb) >> 32));
      CHECK(scalar("s_min_i32 s40, s16, s17", {a, b}).low == static_cast<u32>(std::min(sa, sb)));
      CHECK(scalar("s_cmp_lt_i32 s16, s17", {a, b}).scc == (sa < sb));
      CHECK(scalar("s_cmp_ge_u32 s16, s17", {a, b}).scc == (a >= b));
    }
}

TEST_CASE("scalar bits, 32 and 64 wide") {
  const std::vector<u32> in{0x0f0f1234, 0x80000001, 0xff00ff00, 0x12345678};
  const u64 a = in[0] | u64{in[1]} << 32, b = in[2] | u64{in[3]} << 32;
  const auto wide = [&](const std::string& op) {
    const Scalars r = scalar(op + " s[40:41], s[16:17], s[18:19]", in);
    return r.low | u64{r.high} << 32;
  };
  CHECK(wide("s_and_b64") == (a & b));
  CHECK(wide("s_andn2_b64") == (a & ~b));
  CHECK(wide("s_orn2_b64") == (a | ~b));
  CHECK(wide("s_nand_b64") == ~(a & b));
  CHECK(wide("s_xnor_b64") == ~(a ^ b));
  CHECK(scalar("s_lshl_b32 s40, s16, 37", in).low == in[0] << 5);
  CHECK(scalar("s_ashr_i32 s40, s17, 4", in).low == 0xf8000000U);
  CHECK(scalar("s_bfe_u32 s40, s16, 0x80004", in).low == 0x23U);
  CHECK(scalar("s_bfe_i32 s40, s16, 0x40008", in).low == 2U);
  CHECK(scalar("s_bfe_i32 s40, s18, 0x80008", in).low == 0xffffffffU);
  CHECK(scalar("s_bcnt1_i32_b64 s40, s[16:17]", in).low == static_cast<u32>(std::popcount(a)));
  CHECK(scalar("s_ff1_i32_b32 s40, s16", in).low == 2U);
  CHECK(scalar("s_flbit_i32_b32 s40, s16", in).low == 4U);
  CHECK(scalar("s_brev_b32 s40, s17", in).low == 0x80000001U);
  CHECK(scalar("s_pack_lh_b32_b16 s40, s16, s19", in).low == 0x12341234U);
  CHECK(scalar("s_movk_i32 s40, 0x8000", in).low == 0xffff8000U);
  CHECK(scalar("s_mov_b32 s40, 7\n s_addk_i32 s40, -9", in).low == 0xfffffffeU);
  CHECK(scalar("s_cmpk_eq_u32 s16, 0x1234", {0x1234}).scc);
  CHECK(scalar("s_bitcmp1_b32 s16, 2", in).scc);
  CHECK(scalar("s_mov_b64 exec, 0xff\n s_mov_b64 s[44:45], 0x0f\n s_and_saveexec_b64 s[40:41], s[44:45]\n s_mov_b64 s[46:47], exec\n "
               "s_mov_b64 exec, -1\n s_mov_b32 s40, s46",
               in)
            .low == 0x0fU);
}

TEST_CASE("conditional moves and single bits leave the rest of the destination alone") {
  const std::vector<u32> in{0x0f0f1234, 0x80000001, 0xff00ff00, 0x12345678};
  for (const bool scc : {false, true}) {
    CAPTURE(scc);
    Scalars r = scalar("s_mov_b32 s40, s17\n s_cmov_b32 s40, s16", in, scc);
    CHECK(r.low == (scc ? in[0] : in[1]));
    CHECK(r.scc == scc);
    r = scalar("s_mov_b64 s[40:41], s[18:19]\n s_cmov_b64 s[40:41], s[16:17]", in, scc);
    CHECK(r.low == (scc ? in[0] : in[2]));
    CHECK(r.high == (scc ? in[1] : in[3]));
    CHECK(scalar("s_mov_b32 s40, 5\n s_cmovk_i32 s40, -9", in, scc).low == (scc ? 0xfffffff7U : 5U));
  }
  for (u32 n = 0; n < 70; ++n) {
    CAPTURE(n);
    const u64 wide = in[2] | u64{in[3]} << 32, bit = u64{1} << (n % 64);
    CHECK(scalar("s_mov_b32 s40, s16\n s_bitset0_b32 s40, s20", {in[0], in[1], in[2], in[3], n}).low == (in[0] & ~(1U << (n % 32))));
    CHECK(scalar("s_mov_b32 s40, s16\n s_bitset1_b32 s40, s20", {in[0], in[1], in[2], in[3], n}).low == (in[0] | 1U << (n % 32)));
    Scalars r = scalar("s_mov_b64 s[40:41], s[18:19]\n s_bitset0_b64 s[40:41], s20", {in[0], in[1], in[2], in[3], n});
    CHECK((r.low | u64{r.high} << 32) == (wide & ~bit));
    r = scalar("s_mov_b64 s[40:41], s[18:19]\n s_bitset1_b64 s[40:41], s20", {in[0], in[1], in[2], in[3], n});
    CHECK((r.low | u64{r.high} << 32) == (wide | bit));
  }
}

TEST_CASE("calls and returns by address") {
  const std::string doubling = "s_branch over\nfunction:\n s_lshl_b32 s40, s40, 1\n s_setpc_b64 s[50:51]\nover:\n s_mov_b32 s40, 3\n";
  const LaneResult near = run(
      {.body = doubling + "s_call_b64 s[50:51], function\n s_add_u32 s40, s40, 1\n s_call_b64 s[50:51], function\n v_mov_b32 v64, s40"});
  CHECK(near.run.defects.empty());
  CHECK(near.v[0][0] == 14);
  // s_getpc_b64 gives the address of the instruction after it.
  const LaneResult far = run({.body = doubling + "s_getpc_b64 s[52:53]\nhere:\n s_add_u32 s52, s52, function-here\n s_addc_u32 s53, s53, "
                                                 "-1\n s_swappc_b64 s[50:51], s[52:53]\n v_mov_b32 v64, s40"});
  CHECK(far.run.defects.empty());
  CHECK(far.v[0][0] == 6);
  const LaneResult lost = run({.body = "s_mov_b64 s[50:51], 2\n v_mov_b32 v64, 0\n s_setpc_b64 s[50:51]"});
  CHECK_FALSE(lost.run.completed);
  REQUIRE(lost.run.defects.size() == 1);
  CHECK(lost.run.defects[0].message.find("branches to 0x2") != std::string::npos);
}

TEST_CASE("branches and loops; an endless one is stopped and shows where it stands") {
  const LaneResult loop = run({.body = "s_mov_b32 s40, 0\n s_mov_b32 s41, 0\nagain:\n s_add_u32 s41, s41, s40\n s_add_u32 s40, s40, 1\n "
                                       "s_cmp_lt_u32 s40, 101\n s_cbranch_scc1 again\n v_mov_b32 v64, s41"});
  CHECK(loop.v[0][0] == 5050);
  const LaneResult endless = run({.body = "stay:\n s_nop 0\n s_branch stay"}, {.max_instructions = 1000});
  CHECK_FALSE(endless.run.completed);
  REQUIRE(endless.run.defects.size() == 1);
  CHECK(endless.run.defects[0].kind == DefectKind::instruction_limit);
  CHECK(endless.run.defects[0].message.find("the limit is 1000: wave 0 at 0x") != std::string::npos);
}

TEST_CASE("an instruction that is not modelled stops the run with its name") {
  const LaneResult r = run({.body = "v_mov_b32 v64, 0\n s_sendmsg sendmsg(MSG_INTERRUPT)"});
  CHECK_FALSE(r.run.completed);
  REQUIRE(r.run.defects.size() == 1);
  CHECK(r.run.defects[0].kind == DefectKind::not_modelled);
  CHECK(r.run.defects[0].text.starts_with("s_sendmsg"));
}

TEST_CASE("waves of a workgroup meet at barriers, whatever the seed") {
  // Each of four waves writes its id to LDS; after the barrier every wave reads its neighbour's.
  const kiln::isa::CodeObject object = assemble_kernel({.body = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  v_mul_u32_u24 v2, 3, v0
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_add_u32 v3, 64, v0
  v_and_b32 v3, 0xff, v3
  v_lshlrev_b32 v3, 2, v3
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5])",
                                                        .lds_bytes = 1024});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Memory memory;
    const u64 out = memory.allocate("out", 1024);
    const u64 arguments[3] = {out, 0, 0};
    Grid grid;
    grid.workgroup_size = {256, 1, 1};
    const ExecResult r = execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.seed = seed});
    CHECK(r.completed);
    CHECK(r.defects.empty());
    CHECK(r.waves.waves == 4);
    CHECK(r.waves.executed(InstClass::barrier) == 4);
    CHECK(r.waves.executed(InstClass::lds) == 8);
    const auto* words = reinterpret_cast<const u32*>(memory.bytes(out).data());
    for (u32 i = 0; i < 256; ++i) CHECK(words[i] == 3 * ((i + 64) % 256));
  }
}

} // namespace salu_test
