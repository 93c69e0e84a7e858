// Proves that workgroups that exchange parts are simulated to the end, whatever the schedule, and which schedules are simulated beside the
// cost model's first. How well schedules are chosen is the bench's to say (tests/bench/schedule_bench.cpp).
#include "gen/catalog/catalog.h"
#include "gen/families/common/family.h"
#include "gen/families/schedule.h"
#include "runtime/tune/try_schedule.h"
#include "tests/timing/schedule_points.h"
#include <doctest/doctest.h>

using namespace kiln;
using namespace kiln::testing;

// 20: split sums, whose workgroups take paths of unlike lengths. 563: ragged rows of several workgroups, the last of which takes other
// steps.
TEST_CASE("workgroups that tell each other something are simulated to the end, whatever path the one takes that stands for another") {
  for (const std::uint64_t seed : {20, 563}) {
    const SchedulePoint point = schedule_point(seed);
    const Plan plan = make_plan(point.spec, point.to);
    const std::vector<RunTimeSizes> sizes = nominal_sizes(plan);
    const std::vector<Schedule> all = candidates(plan, point.to);
    for (std::size_t i = 0; i < all.size(); i += 3) {
      const TriedSchedule tried = try_schedule(plan, all[i], point.to, point.to.chip(), {.changes = false}, std::span(sizes).last(1),
                                               own_process_options(process_environment()));
      CHECK((!tried.report.met() || tried.microseconds() > 0));
    }
  }
}

TEST_CASE("a schedule that is too long to be simulated says so, and has no time") {
  const SchedulePoint point = schedule_point(20);
  const Plan plan = make_plan(point.spec, point.to);
  const TriedSchedule tried =
      try_schedule(plan, candidates(plan, point.to).front(), point.to, point.to.chip(), {.changes = false, .max_steps = 100},
                   nominal_sizes(plan), own_process_options(process_environment()));
  CHECK(tried.report.met());
  CHECK(tried.predictions.empty());
  CHECK(tried.microseconds() == 0);
  CHECK(tried.too_long.find("more than 100 wave instructions") != std::string::npos);
}

// Each is at most 3 % behind by the model, and HBM bounds the first.
TEST_CASE("where HBM bounds a launch, what asks for memory otherwise is simulated: ties, and more if CUs have much to do") {
  const Target to = target("gfx942");
  const auto is_tried = [&](std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k, const std::vector<std::string>& other) {
    CatalogOptions o;
    o.fp8 = o.dtype = to.fp8();
    o.m = m, o.n = n, o.k = k;
    const Plan plan = make_plan(catalog_spec(name, o), to);
    const std::vector<Schedule> first{candidates(plan, to).front()};
    const Schedule second = with_overrides(first.front(), other, plan, to);
    const double behind = nominal_cost(plan, second, to) / nominal_cost(plan, first.front(), to);
    CHECK(behind >= 1);
    CHECK(behind < 1.03);
    CHECK(cost_of(*plan.family->demand(plan, first.front(), to, nominal_sizes(plan).front()), to.chip()).bound_by == "HBM");
    return is_worth_simulating(plan, to, first, second);
  };
  CHECK(is_tried("gemm", 1, 8192, 1024, {"waves=1", "stages=16", "workgroups=512"})); // a tie
  CHECK_FALSE(is_tried("gemm", 1, 8192, 3584, {"workgroups=256"}));                   // 1.5 % behind
  CHECK_FALSE(is_tried("gemm", 1, 7168, 8192, {"loads=1", "stages=8"}));              // loads and stages alone differ
  CHECK(is_tried("gemm_block_scaled", 64, 16384, 2048, {"tile_n=32", "stages=2"}));   // 2 % behind, and a ring of one stage
}
