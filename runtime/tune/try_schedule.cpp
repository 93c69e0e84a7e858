// try_schedule: one schedule of a plan compiled, judged by its ISA contract, and its time predicted.
#include "runtime/tune/try_schedule.h"
#include "gen/families/make_plan.h"
#include "isa_checks/error.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/predict_kernel.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <new>

namespace kiln {
namespace {

// Schedules that the cost model has further behind its first are seldom quicker: `./dev bench schedule` counts them.
constexpr double worth_a_compile = 1.1;

} // namespace

double TriedSchedule::microseconds() const {
  double sum = 0;
  for (const timing::Prediction& p : predictions) sum += std::log(p.microseconds);
  return predictions.empty() ? 0 : std::exp(sum / static_cast<double>(predictions.size()));
}

TriedSchedule try_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const timing::Chip& chip,
                           const timing::PredictOptions& predict, std::span<const RunTimeSizes> sizes, const CompileOptions& options) {
  TriedSchedule tried{
      .schedule = schedule, .source = emit_source(plan, schedule, target), .object = {}, .facts = {}, .report = {}, .predictions = {}};
  tried.object = compile(tried.source, target, options);
  Inspection seen = inspect(tried.object, promises(plan, schedule, target));
  tried.facts = std::move(seen.facts);
  tried.report = std::move(seen.report);
  if (!tried.report.met()) return tried;
  for (const RunTimeSizes& at : sizes)
    tried.predictions.push_back(predict_kernel(plan.spec, tried.source, tried.object, at, chip, predict));
  return tried;
}

std::vector<Schedule> worth_simulating(const Plan& plan, const Target& target) {
  std::vector<Schedule> schedules = candidates(plan, target);
  if (nominal_sizes(plan).size() > 1) schedules.erase(schedules.begin() + 1, schedules.end());
  const double limit = worth_a_compile * nominal_cost(plan, schedules.front(), target);
  std::erase_if(schedules, [&](const Schedule& s) { return nominal_cost(plan, s, target) > limit; });
  return schedules;
}

// Infinite for what cannot be simulated, for want of memory say: the first is kept then.
static double simulated_cost(const Plan& plan, BuiltKernel& built, const Target& target) {
  try {
    double sum = 0;
    for (const RunTimeSizes& at : nominal_sizes(plan))
      sum += std::log(predict_kernel(plan.spec, built.source, built.object, at, target.chip(), {.changes = false}).microseconds);
    return sum;
  } catch (const std::bad_alloc&) {
    built.object.log += "kiln: note: there was no memory to simulate it\n";
  } catch (const isa::Error& error) {
    built.object.log += fmt::format("kiln: note: it was not simulated: {}\n", error.what());
  }
  return std::numeric_limits<double>::infinity();
}

BuiltKernel build_quickest(const KernelSpec& spec, const Target& target, const CompileOptions& options, int simulated) {
  const Plan plan = make_plan(spec, target);
  const std::vector<Schedule> schedules = worth_simulating(plan, target);
  if (schedules.size() < 2) return build_kernel(spec, target, options);
  std::optional<BuiltKernel> best;
  std::vector<RejectedSchedule> rejected;
  BuildTimes times;
  double least = 0;
  int kept = 0;
  for (const Schedule& schedule : schedules) {
    if (kept == simulated) break;
    std::optional<BuiltKernel> built = build_schedule(plan, schedule, target, options, rejected, times);
    if (!built) continue;
    ++kept;
    const double cost = simulated_cost(plan, *built, target);
    if (best && cost >= least) continue;
    best = std::move(built), least = cost;
  }
  if (!best) return build_kernel(spec, target, options); // with what the cost model has further behind
  best->rejected = std::move(rejected);
  best->times = times;
  return std::move(*best);
}

} // namespace kiln
