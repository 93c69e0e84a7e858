// try_schedule: one schedule of a plan compiled, judged by its ISA contract, and its time predicted.
#include "runtime/tune/try_schedule.h"
#include "runtime/build/inspect.h"
#include "runtime/launch/record.h"
#include <cmath>

namespace kiln {

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
    tried.predictions.push_back(timing::predict(record_kernel(plan.spec, tried.source, tried.object, at), chip, predict));
  return tried;
}

} // namespace kiln
