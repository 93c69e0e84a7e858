// Proves that few rows are given several workgroups each, that these wait for each other in the record and in the simulation, and that
// one row of 16384 is predicted to take at most 0.75 of the time that the schedule of one workgroup takes.
#include "gen/catalog/catalog.h"
#include "runtime/launch/record.h"
#include "runtime/tune/try_schedule.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;

namespace {

struct Tried {
  TriedSchedule schedule;
  timing::Record record;
};

Tried one_row(const Target& to, std::int64_t max_rows) {
  const Plan plan = make_plan(catalog_spec("add_rmsnorm_quant", {.cols = 16384, .max_rows = max_rows, .fp8 = to.fp8()}), to);
  const std::vector<RunTimeSizes> sizes{{{"rows", 1}}};
  TriedSchedule tried =
      try_schedule(plan, choose_schedule(plan, to), to, to.chip(), {.changes = false}, sizes, own_process_options(process_environment()));
  timing::Record record = record_kernel(plan.spec, tried.source, tried.object, sizes.front());
  return {std::move(tried), std::move(record)};
}

} // namespace

TEST_CASE("one row of 16384 in several workgroups takes at most 0.75 of the time of one workgroup") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const Tried many = one_row(to, 1), one = one_row(to, 0);
    CAPTURE(to_text(many.schedule.schedule));
    CAPTURE(to_text(one.schedule.schedule));
    REQUIRE(many.schedule.report.met());
    CHECK(many.record.workgroups > 1);
    CHECK(one.record.workgroups == 1);
    CHECK_MESSAGE(many.schedule.microseconds() <= 0.75 * one.schedule.microseconds(),
                  fmt::format("{}: {:.2f} us with {} workgroups, {:.2f} us with one", arch, many.schedule.microseconds(),
                              many.record.workgroups, one.schedule.microseconds()));
    // Each workgroup has read what every other one wrote, once: reads that only waited are not in the record.
    for (const timing::Workgroup& w : many.record.recorded) {
      std::vector<bool> heard(many.record.workgroups);
      for (const timing::Awaited& a : w.awaited) heard[a.workgroup] = true;
      heard[w.number] = true;
      CHECK(std::ranges::all_of(heard, [](bool h) { return h; }));
    }
  }
}
