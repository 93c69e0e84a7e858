// Values never written, and races in LDS: kernels that must be caught, and their correct neighbours that must not.
#include "tests/exec/lane_program.h"
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace sanitizer_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

const Lanes64 ids = each_lane([](int i) { return static_cast<std::uint32_t>(i); });

std::vector<Defect> findings_of(const std::string& body, const char* arch = "gfx942") {
  return run({.body = body, .inputs = {ids}, .scalars = {1}, .lds_bytes = 256, .arch = arch}).run.defects;
}
bool caught(const std::string& body) {
  const auto f = findings_of(body);
  return f.size() == 1 && f[0].kind == DefectKind::uninitialised;
}
bool silent(const std::string& body, const char* arch = "gfx942") {
  const auto f = findings_of(body, arch);
  if (!f.empty()) MESSAGE(to_text(f[0]));
  return f.empty();
}

// Four waves; `between` stands between each wave's write and its read of another wave's dword.
ExecResult exchange(const std::string& between, std::uint64_t seed = 1) {
  const kiln::isa::CodeObject object = assemble_kernel({.body = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
)" + between + R"(
  v_xor_b32 v3, 0x40, v0
  v_lshlrev_b32 v3, 2, v3
  ds_read_b32 v4, v3
  s_waitcnt lgkmcnt(0)
  global_store_dword v1, v4, s[4:5])",
                                                        .lds_bytes = 1024});
  Memory memory;
  const std::uint64_t arguments[3] = {memory.allocate("out", 1024), 0, 0};
  Grid grid;
  grid.workgroup_size = {256, 1, 1};
  return execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.seed = seed});
}

} // namespace

TEST_CASE("a value never written is caught where it decides something") {
  CHECK(caught("v_add_u32 v64, v1, v30")); // stored
  CHECK(caught("v_mov_b32 v64, s90"));
  CHECK(caught("v_add_u32 v20, v30, v1\n v_and_b32 v20, 4, v20\n global_load_dword v64, v20, s[4:5]\n s_waitcnt vmcnt(0)")); // an address
  CHECK(caught("v_mov_b32 v64, 0\n v_cmp_lt_f32 vcc, v30, v1\n s_nop 4\n s_cbranch_vccz over\n v_mov_b32 v64, 1\nover:"));   // a branch
  CHECK(caught("v_mov_b32 v64, 0\n s_cmp_eq_u32 s90, 0\n s_cbranch_scc1 over\n v_mov_b32 v64, 1\nover:"));
  CHECK(caught("v_mov_b32 v64, 0\n v_cmp_lt_f32 vcc, v30, v1\n s_nop 4\n s_and_saveexec_b64 s[40:41], vcc\n v_mov_b32 v64, 1")); // EXEC
  CHECK(caught("v_mov_b32 v20, 0\n ds_read_b32 v64, v20\n s_waitcnt lgkmcnt(0)"));                                               // LDS
  CHECK(caught("s_mov_b64 exec, 0xffff\n v_mov_b32 v64, 0")); // only 16 lanes of it
}

TEST_CASE("a value never written that decides nothing is let pass") {
  CHECK(silent("v_mov_b32 v64, v1\n v_add_u32 v40, v30, v31"));
  CHECK(silent("v_and_b32 v64, 0, v30"));                                                               // no bit of it matters
  CHECK(silent("v_mov_b32 v20, 0x0c0c0100\n v_perm_b32 v64, v30, v1, v20"));                            // bytes of v1 only
  CHECK(silent("v_mov_b32 v20, 1.0\n v_pk_add_f32 v[40:41], v[20:21], v[20:21]\n v_mov_b32 v64, v40")); // v21 is garbage, v40 not
  CHECK(silent("s_mov_b64 vcc, -1\n s_nop 4\n v_cndmask_b32 v64, v30, v1, vcc"));
  CHECK(silent("v_mov_b32 v20, 0\n global_load_short_d16 v30, v20, s[4:5]\n s_waitcnt vmcnt(0)\n v_and_b32 v64, 0xffff, v30"));
  CHECK(
      silent("v_mov_b32 v20, 0\n global_load_short_d16 v64, v20, s[4:5]\n global_load_short_d16_hi v64, v20, s[4:5]\n s_waitcnt vmcnt(0)"));
  CHECK(silent("v_lshlrev_b32 v20, 2, v1\n ds_write_b32 v20, v30\n v_mov_b32 v64, 0\n s_waitcnt lgkmcnt(0)"));
  CHECK(silent("v_mov_b32 v64, 0\n v_writelane_b32 v64, s16, 3\n v_readlane_b32 s40, v1, 3\n v_readfirstlane_b32 s41, v1"));
  CHECK(silent("v_mov_b32 v64, v1\n v_mov_b32 v40, v30\n s_nop 1\n v_permlane32_swap_b32 v64, v40\n v_mov_b32 v64, v1", "gfx950"));
}

TEST_CASE("the finding names the lane and register") {
  const auto f = findings_of("s_mov_b64 exec, 0xffff\n v_mov_b32 v64, 0");
  REQUIRE(f.size() == 1);
  CHECK(f[0].lane == 16);
  CHECK(f[0].message == "stores v64, some byte of which was never written");
}

TEST_CASE("LDS exchanged between waves needs a barrier") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CHECK(exchange("s_barrier", seed).defects.empty());
    const ExecResult r = exchange("s_nop 0", seed);
    bool race = false;
    for (const Defect& f : r.defects) race = race || f.kind == DefectKind::lds_race;
    CHECK(race);
  }
}

TEST_CASE("LDS atomics do not race, and order what they guard") {
  // Each wave adds to a counter with an atomic, then the last one to arrive reads what the others wrote.
  const kiln::isa::CodeObject object = assemble_kernel({.body = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v5, 0
  v_mov_b32 v6, 1
  ds_write_b32 v5, v5 offset:1024
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_write_b32 v1, v0
  s_waitcnt lgkmcnt(0)
  v_mbcnt_lo_u32_b32 v2, -1, 0
  v_mbcnt_hi_u32_b32 v2, -1, v2
  v_cmp_eq_u32 vcc, 0, v2
  s_and_saveexec_b64 s[6:7], vcc
  ds_add_rtn_u32 v7, v5, v6 offset:1024
  s_waitcnt lgkmcnt(0)
  v_readfirstlane_b32 s8, v7
  s_mov_b64 exec, -1
  s_cmp_lg_u32 s8, 3
  s_cbranch_scc1 done
  s_mov_b32 s9, 0
next:
  s_lshl_b32 s10, s9, 8
  v_lshl_add_u32 v8, v2, 2, s10
  ds_read_b32 v9, v8
  s_waitcnt lgkmcnt(0)
  global_store_dword v8, v9, s[4:5]
  s_add_u32 s9, s9, 1
  s_cmp_lt_u32 s9, 4
  s_cbranch_scc1 next
done:)",
                                                        .lds_bytes = 1028});
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Memory memory;
    const std::uint64_t out = memory.allocate("out", 1024);
    const std::uint64_t arguments[3] = {out, 0, 0};
    Grid grid;
    grid.workgroup_size = {256, 1, 1};
    const ExecResult r = execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.seed = seed});
    // The first write is by every wave to one dword: a race, at one instruction, and the only one.
    for (const Defect& f : r.defects) CHECK_MESSAGE(f.text.find("offset:1024") != std::string::npos, to_text(f));
    const auto* words = reinterpret_cast<const std::uint32_t*>(memory.bytes(out).data());
    for (std::uint32_t i = 0; i < 256; ++i) CHECK(words[i] == i);
  }
}

// Workgroup 0 reads 16 dwords in each turn of its loop, until workgroup 1 has written them. Both are on one host thread.
TEST_CASE("a workgroup that polls many places is left for the one that it waits for") {
  std::string loads, sum = "  v_mov_b32 v30, v10\n", stores;
  for (int i = 0; i < 16; ++i) {
    loads += fmt::format("  global_load_dword v{}, v1, s[4:5] offset:{} sc1\n", 10 + i, i * 256);
    if (i) sum += fmt::format("  v_min_u32 v30, v30, v{}\n", 10 + i);
    stores += fmt::format("  global_store_dword v1, v2, s[4:5] offset:{} sc1\n", i * 256);
  }
  const kiln::isa::CodeObject object = assemble_kernel({.body = R"(
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v2, 1
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u32 s2, 0
  s_cbranch_scc0 writer
again:
)" + loads + "  s_waitcnt vmcnt(0)\n" + sum + R"(
  v_cmp_eq_u32 vcc, 0, v30
  s_nop 4
  s_cbranch_vccnz again
  s_endpgm
writer:
)" + stores});
  Memory memory;
  const std::uint64_t arguments[3] = {memory.allocate("out", 4096), 0, 0};
  std::memset(memory.bytes(arguments[0]).data(), 0, 4096);
  Grid grid;
  grid.workgroups = {2, 1, 1};
  grid.workgroup_size = {64, 1, 1};
  const ExecResult result = execute(object, "k", grid, std::as_bytes(std::span(arguments)), memory, {.max_instructions = 100'000});
  for (const Defect& defect : result.defects) MESSAGE(to_text(defect));
  CHECK(result.completed);
}

} // namespace sanitizer_test
