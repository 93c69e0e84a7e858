// Proves that a record holds what the executor did: lines, waits, dependences, waits for flags without their repetitions, buffers that
// workgroups share, and all or some of the workgroups; and that ill-formed launches are refused.
#include "isa_checks/error.h"
#include "isa_checks/timing/predict.h"
#include "tests/exec/lane_program.h"
#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>

using namespace kiln;
using namespace kiln::timing;
using kiln::exec::testing::assemble_kernel;

namespace {

// Each lane loads a word of its workgroup's 256 bytes of x and of all workgroups' y, and stores their sum.
constexpr const char* sum_kernel = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx2 s[8:9], s[0:1], 0x10
  s_lshl_b32 s10, s2, 8
  v_lshlrev_b32 v1, 2, v0
  v_add_u32 v2, s10, v1
  s_waitcnt lgkmcnt(0)
  global_load_dword v3, v2, s[4:5]
  global_load_dword v4, v1, s[6:7]
  s_waitcnt vmcnt(0)
  v_add_u32 v5, v3, v4
  global_store_dword v2, v5, s[8:9])";

Record record_sum(std::uint32_t workgroups) {
  exec::Memory memory;
  const std::uint64_t arguments[3] = {memory.allocate("x", 256U * workgroups), memory.allocate("y", 256),
                                      memory.allocate("z", 256U * workgroups)};
  return record(assemble_kernel({.body = sum_kernel}), "k", {.workgroups = {workgroups, 1, 1}}, std::as_bytes(std::span(arguments)),
                memory);
}

std::size_t count(const Record& r, const std::vector<Step>& steps, Action action) {
  return static_cast<std::size_t>(std::ranges::count_if(steps, [&](const Step& s) { return r.code[s.code].action == action; }));
}

const Buffer& buffer(const Record& r, const std::string& name) { return *std::ranges::find(r.buffers, name, &Buffer::name); }

} // namespace

TEST_CASE("a record has each wave's instructions, with lines, waits and dependences") {
  const Record r = record_sum(4);
  REQUIRE(r.recorded.size() == 4);
  const std::vector<Step>& steps = r.recorded[1].waves[0];
  CHECK(count(r, steps, Action::load) == 2);
  CHECK(count(r, steps, Action::store) == 1);
  CHECK(count(r, steps, Action::end) == 1);
  const auto load = std::ranges::find_if(steps, [&](const Step& s) { return r.code[s.code].action == Action::load; });
  const Access& a = r.recorded[1].accesses[load->access];
  CHECK(a.lines == 2); // 64 words
  CHECK(a.halves == 4);
  CHECK(a.bytes == 256);
  CHECK(r.recorded[1].lines[a.first] == r.recorded[0].lines[r.recorded[0].accesses[load->access].first] + 2);
  const auto wait =
      std::ranges::find_if(steps, [&](const Step& s) { return r.code[s.code].action == Action::wait && r.code[s.code].vmcnt == 0; });
  CHECK(wait != steps.end());
  CHECK(std::ranges::count_if(steps, &Step::dependent) == 1); // v_add of v1, right after it is made
}

TEST_CASE("buffers: what each workgroup has of its own, and what all share") {
  const Record r = record_sum(4);
  CHECK(buffer(r, "x").touched == 8);
  CHECK(buffer(r, "x").sharing() == doctest::Approx(1));
  CHECK(buffer(r, "y").touched == 2);
  CHECK(buffer(r, "y").sharing() == doctest::Approx(4));
}

TEST_CASE("lines that are read and written move twice") {
  exec::Memory memory;
  const std::uint64_t x = memory.allocate("x", 1024), y = memory.allocate("y", 256);
  const std::uint64_t in_place[3] = {x, y, x};
  const Record r =
      record(assemble_kernel({.body = sum_kernel}), "k", {.workgroups = {4, 1, 1}}, std::as_bytes(std::span(in_place)), memory);
  CHECK(buffer(r, "x").updated == 8);
  CHECK(buffer(r, "y").updated == 0);
  CHECK(r.footprint == 1024 + 256);
  CHECK(r.moved == record_sum(4).moved); // as much as to another tensor
}

TEST_CASE("of many workgroups that are alike some are run, and stand for the others") {
  const Record r = record_sum(20'000);
  CHECK(r.workgroups == 20'000);
  CHECK(r.recorded.size() <= 24);
  CHECK(r.recorded.back().number == 19'999);
  CHECK(r.representative_of(10'001).signature == r.recorded.front().signature);
  CHECK(buffer(r, "x").touched == doctest::Approx(40'000));
  const double few = simulate(record_sum(304), chip("mi300x"), {}).cycles, many = simulate(r, chip("mi300x"), {}).cycles;
  CHECK(many > 2 * few);
}

TEST_CASE("workgroups that are not executed share lines with those that the executed ones say that they do") {
  constexpr std::uint32_t workgroups = 32768, xcds = 8;
  struct {
    const char *what, *group; // s10 of s2
    std::uint32_t apart;
  } const cases[] = {
      {"one after the other", "s_lshr_b32 s10, s2, 1", 1},
      {"one after the other on an XCD", "s_and_b32 s10, s2, 7\n s_lshr_b32 s11, s2, 4\n s_lshl_b32 s11, s11, 3\n s_add_u32 s10, s10, s11",
       8},
      {"a row apart", "s_and_b32 s10, s2, 0x3fff", 16384},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    std::string body = sum_kernel;
    body.replace(body.find("s_lshl_b32 s10, s2, 8"), 21, std::string(c.group) + "\n  s_lshl_b32 s10, s10, 8");
    exec::Memory memory;
    const std::uint64_t arguments[3] = {memory.allocate("x", 128U * workgroups), memory.allocate("y", 256),
                                        memory.allocate("z", 128U * workgroups)};
    const Record r =
        record(assemble_kernel({.body = body}), "k", {.workgroups = {workgroups, 1, 1}}, std::as_bytes(std::span(arguments)), memory);
    CHECK(r.recorded.size() < workgroups);
    CHECK(buffer(r, "x").sharers.together == 2);
    CHECK(buffer(r, "x").sharers.apart == c.apart);
    const Simulation s = simulate(r, chip("mi300x"), {});
    CHECK(s.traffic.hbm * xcds == doctest::Approx(128.0 * workgroups + 256).epsilon(0.01));
  }
}

TEST_CASE("of workgroups that may wait for each other the one with most to do comes last") {
  // Four waves go 400 times round a loop, 40 times more in a workgroup for each that is behind it, then the first counts.
  const char* const body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_readfirstlane_b32 s10, v0
  s_sub_i32 s11, 63, s2
  s_mul_i32 s11, s11, 40
  s_add_i32 s11, s11, 400
.Lworks:
  s_sub_i32 s11, s11, 1
  s_cmp_lg_u32 s11, 0
  s_cbranch_scc1 .Lworks
  s_cmp_lt_u32 s10, 64
  s_cbranch_scc0 .Lends
  s_waitcnt lgkmcnt(0)
  v_cmp_eq_u32 vcc, 0, v0
  s_and_saveexec_b64 s[12:13], vcc
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  global_load_dword v4, v1, s[4:5] sc1
  global_atomic_add v3, v1, v2, s[4:5] sc0
  s_lshl_b32 s11, s2, 2
  v_mov_b32 v5, s11
  s_waitcnt vmcnt(0)
  global_store_dword v5, v3, s[6:7]
.Lends:)";
  constexpr std::uint32_t workgroups = 64;
  exec::Memory memory;
  const std::uint64_t counter = memory.allocate("counter", 4), order = memory.allocate("order", 4 * workgroups);
  const std::uint64_t arguments[3] = {counter, order, 0};
  static_cast<void>(record(assemble_kernel({.body = body}), "k", {.workgroups = {workgroups, 1, 1}, .workgroup_size = {256, 1, 1}},
                           std::as_bytes(std::span(arguments)), memory));
  const std::span<const std::byte> bytes = memory.bytes(order);
  for (std::uint32_t n = 0; n < workgroups; ++n) {
    std::uint32_t place = 0;
    std::memcpy(&place, &bytes[4 * n], 4);
    CHECK(place == workgroups - 1 - n);
  }
}

TEST_CASE("a wave that waits for a flag is recorded without its repetitions, and with the wave that raises it") {
  const char* between = "";
  SUBCASE("a short loop") {}
  SUBCASE("a long loop, as of a collector of many numbers") { between = ".rept 300\n s_nop 0\n .endr\n"; }
  const std::string body = std::string(R"(
  v_mov_b32 v1, 0
  v_readfirstlane_b32 s10, v0
  ds_write_b32 v1, v1
  s_waitcnt lgkmcnt(0)
  s_barrier
  s_cmp_lt_u32 s10, 64
  s_cbranch_scc0 .Lwaits
  s_movk_i32 s11, 200
.Lworks:
  s_sub_i32 s11, s11, 1
  s_cmp_lg_u32 s11, 0
  s_cbranch_scc1 .Lworks
  v_mov_b32 v2, 1
  ds_write_b32 v1, v2
  s_waitcnt lgkmcnt(0)
  s_endpgm
.Lwaits:
  ds_read_b32 v3, v1
  s_waitcnt lgkmcnt(0)
)") + between + R"(
  v_readfirstlane_b32 s12, v3
  s_cmp_lg_u32 s12, 1
  s_cbranch_scc1 .Lwaits)";
  exec::Memory memory;
  const std::uint64_t arguments[3] = {};
  const Record r = record(assemble_kernel({.body = body, .lds_bytes = 64}), "k", {.workgroup_size = {128, 1, 1}},
                          std::as_bytes(std::span(arguments)), memory);
  const Workgroup& g = r.recorded[0];
  const std::vector<Step>& waits = g.waves[1];
  const auto poll = std::ranges::find_if(waits, [&](const Step& s) { return r.code[s.code].polls; });
  REQUIRE(poll != waits.end());
  CHECK(std::ranges::count(waits, poll->code, &Step::code) == 1);
  CHECK(g.accesses[poll->access].writer == 0);
  // In the simulation it waits as long as the other wave works: 200 times three instructions and a branch that is taken.
  CHECK(simulate(r, chip("mi300x"), {}).cycles > 200 * (2 * 4 + chip("mi300x").taken_branch_cycles));
}

TEST_CASE("ill-formed launches are refused") {
  CHECK_THROWS_WITH_AS(record_sum(0), doctest::Contains("a launch of no workgroups"), isa::Error);
  const isa::CodeObject object = assemble_kernel({.body = sum_kernel});
  CHECK_THROWS_WITH_AS(check_fits(object, chip("mi355x")),
                       doctest::Contains("it is gfx950, the object is for gfx942; use one of mi300x, mi308x, mi325x"), isa::Error);
  CHECK_NOTHROW(check_fits(object, chip("mi325x")));
  exec::Memory memory;
  const std::uint64_t arguments[3] = {};
  CHECK_THROWS_WITH_AS(record(object, "k", {.workgroups = {1, 1, 1}, .workgroup_size = {64, 1, 1}, .dynamic_lds = 70'000},
                              std::as_bytes(std::span(arguments)), memory),
                       doctest::Contains("70000"), isa::Error);
  CHECK_THROWS_WITH_AS(record(object, "k", {}, std::as_bytes(std::span(arguments)), memory), doctest::Contains("does not end well"),
                       isa::Error); // null pointers
}
