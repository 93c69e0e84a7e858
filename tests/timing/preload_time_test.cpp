// Proves that preloaded arguments take one scalar load out of a launch's start, in the simulation as in the closed form.
#include "gen/catalog/catalog.h"
#include "gen/families/common/family.h"
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "runtime/tune/try_schedule.h"
#include <algorithm>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

double start_us(const timing::Prediction& prediction) {
  return std::ranges::find(prediction.phases, "start", &timing::Phase::name)->microseconds;
}

} // namespace

TEST_CASE("with preloaded arguments the first data come a scalar load earlier") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const timing::Chip& chip = to.chip();
    const double load = chip.scalar_load_cycles / chip.clock_ghz / 1e3;
    for (const KernelSpec& spec : {catalog_spec("rmsnorm", {.cols = 16384, .max_rows = 1}),
                                   catalog_spec("gemm", {.dtype = to.fp8(), .m = 8, .n = 2304, .k = 16384})}) {
      CAPTURE(arch);
      CAPTURE(spec.name());
      const Plan plan = make_plan(spec, to);
      const Schedule schedule = choose_schedule(plan, to);
      const std::vector<RunTimeSizes> sizes = nominal_sizes(plan);
      const auto predicted = [&](bool preload) {
        CompileOptions options = own_process_options(process_environment());
        options.preload_arguments = preload;
        return try_schedule(plan, schedule, to, chip, {.changes = false}, std::span(sizes).last(1), options).predictions.front();
      };
      const timing::Prediction with = predicted(true), without = predicted(false);
      CHECK(start_us(without) - start_us(with) > 0.6 * load); // less than a load, where others' launches took part of it
      CHECK(start_us(without) - start_us(with) < 1.1 * load);
      CHECK(with.microseconds < 1.01 * without.microseconds); // a product that begins earlier may meet more of the others in a queue
    }
  }
}
