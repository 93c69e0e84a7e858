// Proves what must hold of the simulation of any kernel: no level gives more than its rate, nearer caches are not slower, more rows take
// not less time, nor more bytes, what is read once is fetched once, and the order of events of one time does not matter; and that more rows
// of any number are predicted to take not less time. Seeds KILN_PROPERTIES_FIRST (1) up to KILN_PROPERTIES_COUNT of them; 500 are the long
// run. And of a foreign kernel whose waves keep more loads outstanding than may be.
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/reference/random.h"
#include "isa_checks/timing/xcd.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/predict_kernel.h"
#include "runtime/launch/record.h"
#include "runtime/tune/try_schedule.h"
#include "tests/exec/lane_program.h"
#include "tests/fuzz/seeds.h"
#include "tests/timing/schedule_points.h"
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>

using namespace kiln;
using namespace kiln::testing;
using timing::CacheState;
using timing::Simulation;

namespace {

void expect_rates_held(const Simulation& s, const timing::Chip& chip) {
  const double ns = s.cycles / chip.clock_ghz, xcds = s.xcds;
  CHECK(s.traffic.hbm * xcds / ns / 1e3 <= chip.hbm_tbs * 1.001);
  CHECK((s.traffic.hbm + s.traffic.mall) * xcds / ns / 1e3 <= chip.mall_tbs * 1.001);
  CHECK((s.traffic.hbm + s.traffic.mall + s.traffic.l2) * chip.xcds / ns / 1e3 <= chip.l2_tbs * 1.001);
}

// What vector loads read of buffers of which hardly a line is asked for by two workgroups, where each line counts once, and those that
// several XCDs ask for do not count. The simulation is of one XCD, the slowest: as many XCDs are taken as have the least.
double read_once_bytes(const timing::Record& r, int xcds) {
  std::map<std::uint64_t, std::set<std::size_t>> xcds_of; // by line
  const auto once = [&](std::uint64_t line) {
    return std::ranges::any_of(r.buffers,
                               [&](const timing::Buffer& b) { return line >= b.first_line && line < b.end_line && b.sharing() < 1.02; });
  };
  const auto count = static_cast<std::size_t>(xcds);
  std::vector<double> workgroups(count), lines(count);
  for (const timing::Workgroup& w : r.recorded) {
    workgroups[w.number % count] += 1;
    for (const auto& steps : w.waves)
      for (const timing::Step& s : steps) {
        if (s.access == timing::none || r.code[s.code].action != timing::Action::load) continue;
        const timing::Access& a = w.accesses[s.access];
        for (std::size_t l = a.first; l < a.first + a.lines; ++l)
          if (once(w.lines[l])) xcds_of[w.lines[l]].insert(w.number % count);
      }
  }
  for (const auto& [line, of] : xcds_of)
    if (of.size() == 1) lines[*of.begin()] += 1;
  const bool all = r.recorded.size() == r.workgroups;
  double least = 1e30; // of an XCD; of a workgroup, the mean over those of an XCD, where not all were recorded
  for (std::size_t xcd = 0; xcd < count; ++xcd)
    if (workgroups[xcd] != 0) least = std::min(least, lines[xcd] / (all ? 1 : workgroups[xcd]));
  return static_cast<double>(line_bytes) * least * (all ? xcds : r.workgroups);
}

// The waves of each workgroup in the opposite order: among events of one time others come first.
timing::Record reversed(timing::Record r) {
  for (timing::Workgroup& w : r.recorded) {
    const auto last = static_cast<std::uint32_t>(w.waves.size() - 1);
    std::ranges::reverse(w.waves);
    for (timing::Access& a : w.accesses)
      if (a.writer != timing::none) a.writer = last - a.writer;
    for (timing::Awaited& a : w.awaited) a.wave = last - a.wave;
  }
  return r;
}

// The same instructions with an eighth more bytes: a line lies after each eight of a buffer, and who accesses the eighth accesses it too.
timing::Record with_more_bytes(timing::Record r) {
  constexpr std::uint64_t before = 8;
  const auto moved = [](const timing::Buffer& b, std::uint64_t line) {
    return 2 * b.first_line + (line - b.first_line) + (line - b.first_line) / before;
  };
  const auto is_eighth = [](const timing::Buffer& b, std::uint64_t line) { return (line - b.first_line) % before == before - 1; };
  for (timing::Workgroup& w : r.recorded) {
    std::vector<std::uint64_t> lines;
    for (timing::Access& a : w.accesses) {
      const auto first = static_cast<std::uint32_t>(lines.size());
      for (std::size_t l = a.first; l < a.first + a.lines; ++l) {
        const auto b = std::ranges::find_if(
            r.buffers, [&](const timing::Buffer& of) { return w.lines[l] >= of.first_line && w.lines[l] < of.end_line; });
        lines.push_back(b == r.buffers.end() ? 2 * w.lines[l] : moved(*b, w.lines[l]));
        if (b == r.buffers.end() || !is_eighth(*b, w.lines[l])) continue;
        lines.push_back(lines.back() + 1);
        a.halves = static_cast<std::uint16_t>(a.halves + 2);
        a.bytes += line_bytes;
      }
      a.lines = static_cast<std::uint16_t>(lines.size() - first);
      a.first = first;
    }
    w.lines = std::move(lines);
    for (std::size_t i = 0; i < w.spans.size(); ++i) {
      timing::LineSpan& span = w.spans[i];
      if (span.count == 0) continue;
      const timing::Buffer& b = r.buffers[i];
      const std::uint64_t last = span.first + span.count - 1;
      span.first = moved(b, span.first);
      span.count = moved(b, last) + (is_eighth(b, last) ? 2 : 1) - span.first;
    }
  }
  constexpr double more = 1 + 1.0 / before;
  for (timing::Buffer& b : r.buffers) {
    b.end_line = moved(b, b.end_line);
    b.first_line *= 2;
    for (double* lines : {&b.touched, &b.requested, &b.updated}) *lines *= more;
  }
  r.footprint *= more;
  r.moved *= more;
  return r;
}

RunTimeSizes sizes_of(const SchedulePoint& point, std::int64_t rows) {
  RunTimeSizes sizes;
  for (const Dim& dim : point.spec.dynamic_dims())
    sizes[dim.name()] = std::clamp<std::int64_t>(rows, dim.min().value_or(1), std::max<std::int64_t>(dim.max().value_or(rows), 1));
  return sizes;
}

timing::Record record_of(const SchedulePoint& point, const BuiltKernel& built, std::int64_t rows) {
  return record_kernel(point.spec, built.source, built.object, sizes_of(point, rows));
}

// What one XCD takes with the data in HBM, in MALL and in L2, each simulated by itself: what is predicted is the least of them.
std::array<double, 3> cycles_alone(const timing::Record& record, const timing::Chip& chip, const Simulation& like) {
  const timing::Requesters requesters(record, static_cast<std::uint32_t>(like.xcds));
  timing::Xcd cold(record, requesters, chip, {.cache = CacheState::cold}), mall(record, requesters, chip, {.cache = CacheState::mall}),
      l2(record, requesters, chip, {.cache = CacheState::l2});
  const double from_hbm = cold.run(like.xcd).cycles, from_mall = mall.run(like.xcd).cycles;
  l2.follow(mall);
  return {from_hbm, from_mall, l2.run(like.xcd).cycles};
}

// By how much of its time a launch may be slower out of L2 than out of MALL, by chance. In 134 what is written lies in L2 until the launch
// ends, and what is hit there drives none of it out (docs/timing_validation.md).
double slower_out_of_l2(std::uint64_t seed) { return seed == 134 ? 0.006 : seed == 107 ? 0.0025 : 0.0005; }

void expect_properties(std::uint64_t seed, const std::vector<std::string>& settings = {}) {
  const SchedulePoint point = schedule_point(seed);
  const std::string title = fmt::format("seed {} {}", seed, point.title);
  CAPTURE(title);
  const timing::Chip& chip = point.to.chip();
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(point.spec, point.to, compile, settings);
  const timing::Record record = record_of(point, built, 8);
  const auto at = [&](const timing::Record& r, CacheState cache) { return timing::simulate(r, chip, {.cache = cache}); };
  const Simulation cold = at(record, CacheState::cold), mall = at(record, CacheState::mall), l2 = at(record, CacheState::l2);
  for (const Simulation* s : {&cold, &mall, &l2}) expect_rates_held(*s, chip);
  CHECK(mall.nanoseconds >= l2.nanoseconds);
  CHECK(cold.nanoseconds >= mall.nanoseconds);
  const auto [from_hbm, from_mall, from_l2] = cycles_alone(record, chip, mall);
  CHECK(from_hbm >= from_mall);
  CHECK(from_mall >= from_l2 * (1 - slower_out_of_l2(seed)));
  CHECK(cold.traffic.hbm * cold.xcds >= 0.9999 * read_once_bytes(record, cold.xcds));
  CHECK(at(with_more_bytes(record), CacheState::cold).nanoseconds >= cold.nanoseconds);
  // If all waves begin at one time, only their numbers are others, and the order of events of one time. As launched, it also changes when
  // each begins.
  timing::Chip at_once = chip;
  at_once.wave_launch_cycles = 0;
  const timing::Record turned = reversed(record);
  CHECK(timing::simulate(turned, at_once, {}).nanoseconds ==
        doctest::Approx(timing::simulate(record, at_once, {}).nanoseconds).epsilon(1e-9));
  CHECK(at(turned, CacheState::cold).nanoseconds == doctest::Approx(cold.nanoseconds).epsilon(0.04));
  if (point.spec.dynamic_dims().empty()) return;
  const timing::Record less = record_of(point, built, 4), more = record_of(point, built, 16);
  const Simulation with_less = at(less, CacheState::cold), with_more = at(more, CacheState::cold);
  constexpr double chance = 1 - 0.0025; // docs/timing_validation.md says what is left to it
  CHECK(cold.nanoseconds >= with_less.nanoseconds * chance);
  CHECK(with_more.nanoseconds >= cold.nanoseconds * chance);
}

// As predicted, more rows take no less time.
void expect_order_of_rows(std::uint64_t seed, std::vector<std::int64_t> rows) {
  const SchedulePoint point = schedule_point(seed);
  const std::string title = fmt::format("seed {} {}", seed, point.title);
  CAPTURE(title);
  const BuiltKernel built = build_kernel(point.spec, point.to, own_process_options(process_environment()));
  std::ranges::sort(rows);
  RunTimeSizes with_less;
  double least = 0;
  for (const std::int64_t count : rows) {
    CAPTURE(count);
    const RunTimeSizes sizes = sizes_of(point, count);
    if (sizes == with_less) continue;
    const double us = predict_kernel(point.spec, built.source, built.object, sizes, point.to.chip(), {.changes = false}).microseconds;
    CHECK(us >= least);
    least = us;
    with_less = sizes;
  }
}

} // namespace

TEST_CASE("properties of the simulation hold for kernels of random points") {
  const std::uint64_t first = number_from("KILN_PROPERTIES_FIRST", 1), count = number_from("KILN_PROPERTIES_COUNT", 4);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    expect_properties(seed);
    Random random(seed);
    const std::int64_t drawn = random.between(1, random.chance(50) ? 15 : 63);
    expect_order_of_rows(seed, {4, 8, 16, drawn, drawn + 1});
  }
}

// Layernorm of 2 rows of 5653: one wave of a workgroup stores the end of a row element by element. If waves go by their number, the order
// of events of one time changes what it takes by 1.7 %.
TEST_CASE("properties of the simulation hold where one wave has more to do than the others") { expect_properties(363); }

// 16 rows are 3.9 % quicker than 8 if loads queue for HBM when waves issue them, not when L1 comes to them. The schedule is that of
// 1dc7bd5b.
TEST_CASE("properties of the simulation hold where some CUs begin before the others") {
  expect_properties(237, {"tile_n=32", "waves=4", "loads=1", "stages=4", "workgroups=256", "vec=2"});
}

// 16 rows are 3.0 % quicker than 8 if, of the waves that may go on at one time, the one with the most steps left goes first.
TEST_CASE("properties of the simulation hold where two waves have more to do at the end") { expect_properties(237); }

// HBM gives 1.6 % less than is read if each line is shared by as many XCDs as workgroups: the two that share one are on the same XCD.
TEST_CASE("properties of the simulation hold where tiles end within a line") { expect_properties(126); }

// 8 rows are 1 % quicker than 4 on seven XCDs, none of them the slowest.
TEST_CASE("properties of the simulation hold where XCDs that execute the same differ") { expect_properties(375); }

// 8 rows are 2.1 % quicker than 4 if rows of A ahead are divided by the bound of the rows: half of the workgroups ask for none of 4.
TEST_CASE("properties of the simulation hold where there are fewer rows than the schedule has room for") { expect_properties(798); }

// 8 rows are 1.3 % quicker than 4 if latency falls with the bytes in flight at any rate: the later one of two requests may come first.
TEST_CASE("properties of the simulation hold where many loads come at once") { expect_properties(920); }

// A launch is 3.2 % slower out of L2 than out of MALL if L2 is taken to have the lines of one workgroup after the other.
TEST_CASE("properties of the simulation hold where L2 keeps nothing of use") { expect_properties(719); }

// A launch is 0.25 % slower out of L2 than out of MALL if a wave that has just gone keeps going, before those that are to go first.
TEST_CASE("properties of the simulation hold where waves may go at one time") { expect_properties(53); }

// A launch is 0.4 % slower out of L2 than out of MALL if the wave that counts its workgroup waits for that before its first loads.
TEST_CASE("properties of the simulation hold where workgroups count") { expect_properties(538); }

// 8 rows are 0.5 % quicker than 4 if the epilogue loads scales that L1 has lost.
TEST_CASE("properties of the simulation hold where the epilogue has operands") { expect_properties(466); }

// By itself a launch of 8 rows comes out 0.23 % quicker than one of 4, one of 10 rows 0.37 % quicker than one of 9, and one of 33 rows
// 1.4 % quicker than one of 32.
TEST_CASE("a launch is predicted to take no longer than with more rows") {
  expect_order_of_rows(223, {4, 8});
  expect_order_of_rows(202, {9, 10});
  expect_order_of_rows(24, {32, 33});
}

// A wave that has as many loads outstanding as there may be waits in its place, and the others go on: it took memory without end.
TEST_CASE("waves with more loads than may be outstanding are simulated in the order of time") {
  std::string body = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32 v1, 4, v0\n  s_mul_i32 s10, s2, 0x40000\n"
                     "  v_add_u32 v1, s10, v1\n  s_waitcnt lgkmcnt(0)\n";
  for (int i = 0; i < 200; ++i)
    body += fmt::format("  global_load_dwordx4 v[{}:{}], v1, s[4:5]\n  v_add_u32 v1, 0x400, v1\n", 4 + i % 50 * 4, 7 + i % 50 * 4);
  exec::Memory memory;
  constexpr std::uint32_t workgroups = 304;
  const std::uint64_t arguments[3] = {memory.allocate("x", 0x40000ULL * workgroups), 0, 0};
  const timing::Record r = timing::record(exec::testing::assemble_kernel({.body = body}), "k", {.workgroups = {workgroups, 1, 1}},
                                          std::as_bytes(std::span(arguments)), memory);
  const timing::Chip& chip = timing::chip("mi300x");
  const Simulation s = timing::simulate(r, chip, {});
  expect_rates_held(s, chip);
  CHECK(s.traffic.hbm * s.xcds == doctest::Approx(200.0 * 1024 * workgroups).epsilon(0.01));
  CHECK(s.nanoseconds < 2.2 * 200 * 1024 * workgroups / chip.hbm_tbs / 1e3); // 14.8 us at the rate of HBM
}
