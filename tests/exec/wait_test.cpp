// The wait sanitiser: a register used while its load is in flight is a finding, and nothing else is.
#include "isa_checks/exec/machine/measurements.h"
#include "tests/exec/lane_program.h"
#include <array>
#include <doctest/doctest.h>

namespace wait_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

const Lanes64 zeros{};

std::vector<Defect> findings_of(const std::string& body) {
  return run({.body = body, .inputs = {zeros}, .scalars = {1}, .lds_bytes = 256}, {.check_undefined = false}).run.defects;
}
bool trips(const std::string& body) {
  const auto f = findings_of(body);
  return f.size() == 1 && f[0].kind == DefectKind::unwaited_register;
}
bool silent(const std::string& body) { return findings_of(body).empty(); }

} // namespace

TEST_CASE("vector memory returns in order: a wait for all but the newest") {
  const std::string loads =
      "v_mov_b32 v20, 0\n global_load_dword v10, v20, s[4:5]\n global_load_dword v11, v20, s[4:5]\n global_load_dword v12, v20, s[4:5]\n";
  CHECK(trips(loads + "v_mov_b32 v64, v10\n s_waitcnt vmcnt(0)"));
  CHECK(silent(loads + "s_waitcnt vmcnt(2)\n v_mov_b32 v64, v10\n s_waitcnt vmcnt(0)"));
  CHECK(trips(loads + "s_waitcnt vmcnt(2)\n v_mov_b32 v64, v11\n s_waitcnt vmcnt(0)"));
  CHECK(trips(loads + "s_waitcnt lgkmcnt(0)\n v_mov_b32 v64, v10\n s_waitcnt vmcnt(0)"));
  CHECK(silent(loads + "s_waitcnt vmcnt(0)\n v_add_u32 v64, v11, v12"));
}

TEST_CASE("how much is outstanding is counted at each wait") {
  const auto at_wait = [](const std::string& body) {
    const auto r = run({.body = body, .inputs = {zeros}, .scalars = {1}, .lds_bytes = 256}, {.check_undefined = false}).run;
    std::vector<std::array<int, 4>> counts; // least and most of vmcnt, then of lgkmcnt; of the marked waits
    for (const InstructionProfile& i : r.instructions)
      if (i.text.starts_with("s_waitcnt") && i.text.find("expcnt(6)") != std::string::npos)
        counts.push_back({i.counters.min_vm, i.counters.max_vm, i.counters.min_lgkm, i.counters.max_lgkm});
    return counts;
  };
  using Counts = std::vector<std::array<int, 4>>;
  const std::string start = "s_waitcnt vmcnt(0) lgkmcnt(0)\n v_mov_b32 v20, 0\n", mark = "s_waitcnt expcnt(6)\n";
  const std::string load = "global_load_dword v10, v20, s[4:5]\n", end = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";
  CHECK(at_wait(start + load + load + "ds_read_b32 v12, v20\n" + mark + "s_waitcnt vmcnt(1)\n" + mark + end) ==
        Counts{{2, 2, 1, 1}, {1, 1, 1, 1}});
  CHECK(at_wait(start + "s_load_dword s40, s[8:9], 0x0\n ds_read_b32 v12, v20\n s_waitcnt lgkmcnt(1)\n" + mark + end) ==
        Counts{{0, 0, 1, 1}});
  CHECK(at_wait(start + "buffer_wbl2 sc1\n s_dcache_inv\n" + mark + "buffer_inv sc1\n" + mark + end) == Counts{{1, 1, 1, 1}, {1, 1, 1, 1}});
  // A loop that adds one each time, to 63.
  std::string loop = start + "s_movk_i32 s40, 70\nagain:\n" + mark + "global_store_dword v20, v20, s[6:7]\n";
  loop += "s_sub_u32 s40, s40, 1\n s_cmp_lg_u32 s40, 0\n s_cbranch_scc1 again\n" + end;
  CHECK(at_wait(loop) == Counts{{0, 63, 0, 0}});
}

TEST_CASE("stores count too") {
  const std::string both = "v_mov_b32 v20, 0\n global_load_dword v10, v20, s[4:5]\n global_store_dword v20, v20, s[6:7]\n";
  CHECK(silent(both + "s_waitcnt vmcnt(1)\n v_mov_b32 v64, v10\n s_waitcnt vmcnt(0)"));
  CHECK(trips(both + "s_waitcnt vmcnt(2)\n v_mov_b32 v64, v10\n s_waitcnt vmcnt(0)"));
}

TEST_CASE("overwriting the target of a load in flight") {
  const std::string load = "v_mov_b32 v20, 0\n global_load_dword v64, v20, s[4:5]\n";
  CHECK(trips(load + "v_mov_b32 v64, 0\n s_waitcnt vmcnt(0)"));
  CHECK(silent(load + "s_waitcnt vmcnt(0)\n v_mov_b32 v64, 0"));
}

TEST_CASE("LDS and scalar loads share a counter; scalar loads return in any order") {
  const std::string lds = "v_mov_b32 v20, 0\n ds_read_b32 v10, v20\n ds_read_b32 v64, v20\n";
  CHECK(silent(lds + "s_waitcnt lgkmcnt(1)\n v_mov_b32 v65, v10\n s_waitcnt lgkmcnt(0)"));
  CHECK(trips(lds + "s_waitcnt lgkmcnt(1)\n v_mov_b32 v65, v64\n s_waitcnt lgkmcnt(0)"));
  const std::string scalar = "s_load_dword s40, s[8:9], 0x0\n s_load_dword s41, s[8:9], 0x4\n";
  CHECK(trips(scalar + "s_waitcnt lgkmcnt(1)\n v_mov_b32 v64, s40\n s_waitcnt lgkmcnt(0)"));
  CHECK(trips(scalar + "s_add_u32 s41, s41, 1\n s_waitcnt lgkmcnt(0)\n v_mov_b32 v64, s40")); // read and overwrite: one finding
  CHECK(silent(scalar + "s_waitcnt lgkmcnt(0)\n v_mov_b32 v64, s40"));
}

TEST_CASE("wide destinations and the address of the load are named") {
  const auto f = findings_of("v_mov_b32 v20, 0\n global_load_dwordx4 v[64:67], v20, s[6:7] offset:-16\n s_waitcnt vmcnt(1)\n v_mov_b32 "
                             "v70, v66\n s_waitcnt vmcnt(0)");
  REQUIRE(f.size() == 2); // the load lies before the allocation as well
  CHECK(f[1].kind == DefectKind::unwaited_register);
  CHECK(f[1].message.find("reads v66 while the load at 0x") == 0);
}

TEST_CASE("flat loads have arrived when both counters were waited for, in one instruction or in two") {
  const std::string load = "v_mov_b32 v20, s4\n v_mov_b32 v21, s5\n flat_load_dword v10, v[20:21]\n";
  CHECK(silent(load + "s_waitcnt vmcnt(0) lgkmcnt(0)\n v_mov_b32 v64, v10"));
  CHECK(silent(load + "s_waitcnt vmcnt(0)\n s_waitcnt lgkmcnt(0)\n v_mov_b32 v64, v10"));
  CHECK(trips(load + "s_waitcnt vmcnt(0)\n v_mov_b32 v64, v10\n s_waitcnt lgkmcnt(0)"));
}

TEST_CASE("bytes of loads in flight at each wait: on average and at most; stores and LDS do not count") {
  const LaneResult r = run({.body = "v_mov_b32 v20, 0\n s_movk_i32 s40, 2\nagain:\n global_load_dword v10, v20, s[4:5]\n"
                                    "global_load_dwordx2 v[12:13], v20, s[4:5]\n ds_read_b32 v14, v20\n s_waitcnt vmcnt(1)\n"
                                    "s_mov_b64 exec, 0xff\n global_load_dwordx4 v[16:19], v20, s[4:5]\n s_mov_b64 exec, -1\n"
                                    "s_waitcnt vmcnt(0) lgkmcnt(0)\n s_sub_u32 s40, s40, 1\n s_cmp_lg_u32 s40, 0\n s_cbranch_scc1 again\n"
                                    "v_mov_b32 v64, v10",
                            .inputs = {zeros},
                            .scalars = {1},
                            .lds_bytes = 256},
                           {.check_undefined = false});
  std::vector<InstCounters> waits;
  for (const InstructionProfile& i : r.run.instructions)
    if (i.cls == InstClass::wait) waits.push_back(i.counters);
  REQUIRE(waits.size() == 4); // the first two are of the frame around the body
  CHECK(waits[2].executed == 2);
  CHECK(waits[2].in_flight == 2 * 64 * 12);
  CHECK(waits[2].in_flight_peak == 64 * 12);
  CHECK(waits[3].in_flight == 2 * (64 * 8 + 8 * 16));
  CHECK(r.run.waves.mean() == static_cast<double>(r.run.waves.executed()));
}

} // namespace wait_test
