// The wait analysis: queues on straight lines, at joins and round loops.
#include "isa_checks/analysis/waits/waits.h"
#include "tests/isa/snippet.h"
#include <ctime>
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace waits_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

struct Analysed {
  Program program;
  WaitAnalysis waits;
};

Analysed analyse(std::string_view body, std::string_view arch = "gfx942") {
  const CodeObject object = assemble_kernel(body, arch);
  Disassembler disassembler(object.target());
  Analysed result{build_program(object.kernel("k"), disassembler), {}};
  result.waits = analyse_waits(result.program);
  return result;
}

using Indices = std::vector<std::size_t>;

void check_point(const WaitPoint& point, std::pair<int, int> outstanding, const Indices& waits_for, int distance) {
  CHECK(point.min_outstanding == outstanding.first);
  CHECK(point.max_outstanding == outstanding.second);
  CHECK(point.waits_for == waits_for);
  CHECK(point.shortest_distance == distance);
}

constexpr std::string_view load = "  global_load_dwordx4 v[0:3], v4, s[2:3]\n";
std::string loads(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += load;
  return text;
}

} // namespace

TEST_CASE("in order: a wait completes the oldest") {
  const auto [program, waits] =
      analyse(loads(3) + "  global_store_dword v4, v0, s[2:3]\n  s_nop 0\n  s_waitcnt vmcnt(2)\n  s_waitcnt vmcnt(1)\n "
                         " s_waitcnt vmcnt(1)\n  s_waitcnt vmcnt(0)");
  REQUIRE(waits.points.size() == 4);
  check_point(waits.points[0], {4, 4}, {0, 1}, 3); // instruction 1, then 2, 3, 4 before the wait at 5
  check_point(waits.points[1], {2, 2}, {2}, 3);
  check_point(waits.points[2], {1, 1}, {}, -1);
  CHECK(waits.points[2].idle());
  CHECK_FALSE(waits.points[2].drains());
  check_point(waits.points[3], {1, 1}, {3}, 4); // the store
  CHECK(waits.points[3].drains());
  CHECK_FALSE(waits.approximate);
}

TEST_CASE("vmcnt and lgkmcnt are two queues; LDS in order, lane exchange included") {
  const auto [program, waits] = analyse(loads(1) + "  ds_read_b128 v[0:3], v4\n  ds_bpermute_b32 v0, v1, v2\n  "
                                                   "s_waitcnt vmcnt(0) lgkmcnt(1)\n  s_waitcnt lgkmcnt(0)");
  REQUIRE(waits.points.size() == 3);
  CHECK(waits.points[0].counter == WaitCounter::vmcnt);
  check_point(waits.points[0], {1, 1}, {0}, 2);
  CHECK(waits.points[1].counter == WaitCounter::lgkmcnt);
  check_point(waits.points[1], {2, 2}, {1}, 1);
  check_point(waits.points[2], {1, 1}, {2}, 1);
}

TEST_CASE("scalar loads and flat complete in any order") {
  const auto scalar = analyse("  s_load_dword s4, s[2:3], 0x0\n  ds_read_b32 v0, v1\n  s_waitcnt lgkmcnt(1)\n  s_waitcnt lgkmcnt(0)");
  check_point(scalar.waits.points[0], {2, 2}, {0, 1}, 0); // either may be what completes
  check_point(scalar.waits.points[1], {1, 1}, {0, 1}, 1); // and either what is left
  const auto flat = analyse("  flat_load_dword v0, v[2:3]\n  s_waitcnt vmcnt(0)\n  s_waitcnt lgkmcnt(0)");
  check_point(flat.waits.points[0], {1, 1}, {0}, 0);
  check_point(flat.waits.points[1], {1, 1}, {0}, 1);
}

TEST_CASE("invalidations are not counted, write-backs are") {
  const auto [program, waits] = analyse("  buffer_inv sc1\n  s_waitcnt vmcnt(0)\n  buffer_wbl2 sc1\n  s_waitcnt vmcnt(0)");
  CHECK(waits.points[0].idle());
  check_point(waits.points[1], {1, 1}, {2}, 0);
}

TEST_CASE("GDS operations count in lgkmcnt and expcnt; other memory operations do not count in expcnt") {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950"}) {
    const auto [program, waits] = analyse("  ds_gws_init v0 gds\n  ds_gws_barrier v2 gds\n" + loads(1) +
                                              "  ds_read_b32 v9, v8\n  s_load_dword s4, s[2:3], 0x0\n"
                                              "  s_waitcnt expcnt(1)\n  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)\n  s_waitcnt expcnt(0)",
                                          arch);
    REQUIRE(waits.points.size() == 5);
    CHECK(waits.points[0].counter == WaitCounter::expcnt);
    check_point(waits.points[0], {2, 2}, {0}, 4);
    CHECK(waits.points[0].value == 1);
    CHECK(waits.points[1].counter == WaitCounter::vmcnt);
    check_point(waits.points[1], {1, 1}, {2}, 3);
    CHECK(waits.points[2].counter == WaitCounter::lgkmcnt);
    check_point(waits.points[2], {4, 4}, {0, 1, 3, 4}, 1);
    CHECK(waits.points[3].counter == WaitCounter::expcnt);
    check_point(waits.points[3], {1, 1}, {1}, 4);
    CHECK(waits.points[4].idle());
    const auto json = nlohmann::json::parse(to_json(waits, program));
    CHECK(json["waits"][0]["counter"] == "expcnt");
    CHECK(json["waits"][0]["waits_for"] == std::vector<int>{0});
    CHECK(to_text(waits, program).find("expcnt(1): 2 outstanding, waits for 0x0 ds_gws_init, issued 4 instr") != std::string::npos);
  }
}

TEST_CASE("LDS and GDS are each in order, and in any order with each other") {
  const auto gds = analyse("  ds_gws_init v0 gds\n  ds_gws_barrier v2 gds\n  s_waitcnt lgkmcnt(1)\n  s_waitcnt lgkmcnt(0)");
  check_point(gds.waits.points[0], {2, 2}, {0}, 1);
  check_point(gds.waits.points[1], {1, 1}, {1}, 1);
  const auto both = analyse("  ds_read_b32 v9, v8\n  ds_gws_init v0 gds\n  s_waitcnt lgkmcnt(1)\n  s_waitcnt lgkmcnt(0)\n"
                            "  ds_read_b32 v9, v8\n  ds_read_b32 v7, v8\n  s_waitcnt lgkmcnt(1)");
  check_point(both.waits.points[0], {2, 2}, {0, 1}, 0);
  check_point(both.waits.points[1], {1, 1}, {0, 1}, 1);
  check_point(both.waits.points[2], {2, 2}, {4}, 1); // once all are gone, the mixture is forgotten
  const auto joined = analyse("  s_cbranch_scc0 other\n  ds_read_b32 v9, v8\n  ds_read_b32 v7, v8\n  s_branch join\n"
                              "other:\n  ds_gws_init v0 gds\n  ds_gws_init v2 gds\njoin:\n  s_waitcnt lgkmcnt(1)");
  check_point(joined.waits.points[0], {2, 2}, {1, 2, 4, 5}, 0); // which path it was is not followed
}

TEST_CASE("expcnt where paths meet") {
  const auto [program, waits] = analyse("  ds_gws_init v0 gds\n  s_cbranch_scc0 join\n  ds_gws_barrier v2 gds\n  ds_gws_barrier v2 gds\n"
                                        "join:\n  s_waitcnt expcnt(1)\n  s_waitcnt expcnt(0)");
  REQUIRE(waits.points.size() == 2);
  check_point(waits.points[0], {1, 3}, {0, 2}, 1);
  check_point(waits.points[1], {1, 1}, {0, 3}, 1);
}

TEST_CASE("expcnt round a loop, and where it saturates") {
  const auto [program, waits] = analyse("  ds_gws_init v0 gds\nloop:\n  ds_gws_barrier v2 gds\n  s_waitcnt expcnt(1)\n  v_mov_b32 v0, 0\n"
                                        "  s_cbranch_scc1 loop\n  s_waitcnt expcnt(0)");
  REQUIRE(waits.points.size() == 2);
  CHECK(waits.points[0].loop == 0);
  check_point(waits.points[0], {2, 2}, {0, 1}, 1); // the first trip: what came before; the others: the trip before
  check_point(waits.points[1], {1, 1}, {1}, 3);
  std::string many;
  for (int i = 0; i < 9; ++i) many += "  ds_gws_init v0 gds\n";
  const auto full = analyse(many + "  s_waitcnt expcnt(6)\n  s_waitcnt expcnt(0)");
  check_point(full.waits.points[0], {7, 7}, {2}, 6);
  check_point(full.waits.points[1], {6, 6}, {3, 4, 5, 6, 7, 8}, 1);
  const auto counts = outstanding_counts(full.program);
  CHECK(counts[3].max_exp == 3);
  CHECK(counts[9].min_exp == 7);
  CHECK(counts[10].max_exp == 6);
}

TEST_CASE("images of gfx90a count in vmcnt") {
  const auto [program, waits] = analyse("  image_load v[0:3], v[0:1], s[0:7] dmask:0xf\n  s_waitcnt vmcnt(0)", "gfx90a");
  check_point(waits.points[0], {1, 1}, {0}, 0);
}

TEST_CASE("paths that meet") {
  const auto [program, waits] =
      analyse(loads(1) + "  s_cbranch_scc0 join\n" + loads(2) + "join:\n  s_waitcnt vmcnt(1)\n  s_waitcnt vmcnt(0)");
  REQUIRE(waits.points.size() == 2);
  check_point(waits.points[0], {1, 3}, {0, 2}, 1); // on the long path: the first load, and the first of the branch
  check_point(waits.points[1], {1, 1}, {0, 3}, 1);
}

TEST_CASE("of two distances to the same operation the shorter is told") {
  for (const char* branch : {"s_cbranch_scc0", "s_cbranch_scc1"}) { // in either order of the blocks' visits
    const auto [program, waits] = analyse(loads(1) + "  s_cmp_lg_u32 s0, 0\n  " + branch +
                                          " far\n  s_branch join\nfar:\n  s_nop 0\n  s_nop 0\n  s_nop 0\njoin:\n  s_waitcnt vmcnt(0)");
    REQUIRE(waits.points.size() == 1);
    check_point(waits.points[0], {1, 1}, {0}, 3);
    const auto other =
        analyse(loads(1) + "  s_cmp_lg_u32 s0, 0\n  " + branch + " join\n  s_nop 0\n  s_nop 0\n  s_nop 0\njoin:\n  s_waitcnt vmcnt(0)");
    check_point(other.waits.points[0], {1, 1}, {0}, 2);
  }
}

TEST_CASE("a counter saturates") {
  const auto [program, waits] = analyse(loads(70) + "  s_waitcnt vmcnt(62)\n  s_waitcnt vmcnt(0)");
  CHECK(waits.points[0].max_outstanding == 63);
  CHECK(waits.points[0].waits_for == Indices{7}); // the 63 youngest are 7 to 69
  CHECK(waits.points[1].max_outstanding == 62);
}

TEST_CASE("a loop that drains keeps nothing in flight") {
  const auto [program, waits] = analyse("loop:\n" + loads(2) + "  s_waitcnt vmcnt(0)\n  v_add_f32_e32 v0, v0, v1\n  s_cbranch_scc1 loop");
  REQUIRE(waits.loops.size() == 1);
  CHECK(waits.points[0].loop == 0);
  CHECK(waits.loops[0].loads == 2);
  CHECK(waits.loops[0].bytes_a_trip == 2 * 16 * 64);
  CHECK(waits.loops[0].min_bytes == 0);
  CHECK(waits.loops[0].max_bytes == 2 * 16 * 64);
  CHECK(waits.loops[0].drains == 1);
}

TEST_CASE("a ring of slots keeps all but one load in flight") {
  std::string ring = loads(8) + "loop:\n";
  for (int slot = 0; slot < 8; ++slot) ring += "  s_waitcnt vmcnt(7)\n  v_add_f32_e32 v0, v0, v1\n" + loads(1);
  ring += "  s_cbranch_scc1 loop";
  const auto [program, waits] = analyse(ring);
  REQUIRE(waits.points.size() == 8);
  for (std::size_t slot = 0; slot < 8; ++slot) {
    // Waits for what the prologue or the trip before loaded into the same slot.
    check_point(waits.points[slot], {8, 8}, {slot, 8 + 3 * slot + 2}, static_cast<int>(7 + slot * 2));
    CHECK_FALSE(waits.points[slot].drains());
  }
  REQUIRE(waits.loops.size() == 1);
  CHECK(waits.loops[0].min_bytes == 7 * 1024);
  CHECK(waits.loops[0].max_bytes == 8 * 1024);
  CHECK(waits.loops[0].drains == 0);
}

TEST_CASE("the settled state of a loop forgets what came before it") {
  // 20 loads before; each trip loads one and leaves one: the 20 are gone after the first wait.
  const auto [program, waits] = analyse(loads(20) + "loop:\n" + loads(1) + "  s_waitcnt vmcnt(1)\n  s_cbranch_scc1 loop");
  CHECK(waits.points[0].max_outstanding == 21); // the first trip
  CHECK(waits.points[0].min_outstanding == 2);  // the others
  CHECK(waits.loops[0].max_bytes == 2 * 1024);
  CHECK(waits.loops[0].min_bytes == 1024);
}

TEST_CASE("stores and LDS DMA in a loop") {
  const auto [program, waits] = analyse("loop:\n  global_load_lds_dword v0, s[2:3]\n  global_store_dwordx4 v4, v[0:3], "
                                        "s[2:3]\n  s_waitcnt vmcnt(1)\n  s_cbranch_scc1 loop");
  CHECK(waits.loops[0].loads == 1);
  CHECK(waits.loops[0].bytes_a_trip == 256);
  CHECK(waits.loops[0].max_bytes == 256);
  CHECK(waits.loops[0].min_bytes == 0); // what may stay is the store
}

TEST_CASE("nested loops: the outer one counts the inner one's loads") {
  const auto [program, waits] =
      analyse("outer:\n" + loads(1) + "inner:\n" + loads(1) + "  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 inner\n  s_cbranch_vccz outer");
  REQUIRE(waits.loops.size() == 2);
  CHECK(waits.loops[0].loads == 2);
  CHECK(waits.loops[1].loads == 1);
  CHECK(waits.loops[0].drains == 1);
  CHECK(waits.loops[0].max_bytes == 2 * 1024);
  CHECK(waits.loops[1].max_bytes == 1024); // once settled
}

TEST_CASE("a call completes everything, and is said") {
  const auto [program, waits] = analyse(loads(2) + "  ds_gws_init v0 gds\n  s_swappc_b64 s[30:31], s[4:5]\n  s_waitcnt vmcnt(0) expcnt(0)");
  CHECK(waits.approximate);
  REQUIRE(waits.points.size() == 2);
  CHECK(waits.points[0].idle());
  CHECK(waits.points[1].idle());
}

TEST_CASE("waits that nothing reaches are left out; text and JSON") {
  const auto [program, waits] = analyse(loads(1) + "  s_branch done\n  s_waitcnt vmcnt(0)\ndone:\n  s_waitcnt vmcnt(0)\nloop:\n" +
                                        loads(1) + "  s_cbranch_scc1 loop");
  REQUIRE(waits.points.size() == 1);
  const std::string text = to_text(waits, program);
  CHECK(text.find("  0x10 vmcnt(0): 1 outstanding, waits for 0x0 global_load_dwordx4, issued 1 instruction before\n") != std::string::npos);
  CHECK(text.find("loop 0 (0x14 to 0x1c): 1 load, 1024 bytes a trip of a wave, ") != std::string::npos);
  CHECK(waits.loops[0].max_bytes == 63 * 1024); // no wait at all: the counter's capacity
  const auto json = nlohmann::json::parse(to_json(waits, program));
  CHECK(json["waits"][0]["address"] == 0x10);
  CHECK(json["waits"][0]["waits_for"] == std::vector<int>{0});
  CHECK(json["waits"][0]["loop"].is_null());
  CHECK(json["loops"][0]["header"] == 0x14);
}

TEST_CASE("a hostile flow graph ends quickly and says that it was not analysed") {
  // Branches from everywhere to everywhere, with operations between: states keep changing.
  std::string body = "entry:\n";
  constexpr int blocks = 3000;
  for (int b = 0; b < blocks; ++b) {
    body += "b" + std::to_string(b) + ":\n  flat_load_dword v0, v[2:3]\n  s_load_dword s0, s[2:3], 0x0\n  ds_read_b32 v1, v2\n";
    body += "  s_cbranch_scc0 b" + std::to_string((b * 997 + 13) % blocks) + "\n  s_waitcnt lgkmcnt(7)\n";
  }
  const std::clock_t start = std::clock(); // processor time: others may use the machine
  const auto [program, waits] = analyse(body);
#if !defined(__SANITIZE_ADDRESS__)                                        // which takes fifteen times as long
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 10); // it takes about one second
#else
  static_cast<void>(start);
#endif
  CHECK_FALSE(waits.complete);
  CHECK(waits.points.empty());
  CHECK(waits.loops.size() == program.loops.size());
  CHECK(to_text(waits, program).find("not analysed") != std::string::npos);
}

} // namespace waits_test
