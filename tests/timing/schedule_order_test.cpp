// Proves that workgroups that exchange parts are simulated to the end, whatever the schedule. How well schedules are chosen is the bench's
// to say (tests/bench/schedule_bench.cpp).
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
    for (const Schedule& schedule : candidates(plan, point.to)) {
      const TriedSchedule tried = try_schedule(plan, schedule, point.to, point.to.chip(), {.changes = false}, nominal_sizes(plan),
                                               own_process_options(process_environment()));
      CHECK((!tried.report.met() || tried.microseconds() > 0));
    }
  }
}
