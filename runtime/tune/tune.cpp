// tune: the quickest schedule of a kernel.
#include "runtime/tune/tune.h"
#include "gen/families/make_plan.h"
#include "runtime/build/build_kernel.h"

namespace kiln {

TimeOfSchedule predicted_time(const Target& target, const timing::Chip& chip, timing::CacheState cache, const CompileOptions& options) {
  return [=, &chip](const Plan& plan, const Schedule& schedule) -> std::optional<double> {
    const TriedSchedule tried =
        try_schedule(plan, schedule, target, chip, {.cache = cache, .changes = false, .alone = true}, nominal_sizes(plan), options);
    return tried.predictions.empty() ? std::nullopt : std::optional(tried.microseconds());
  };
}

std::optional<TuningEntry> Tuner::tune(const KernelSpec& spec, const Target& target) const {
  const Plan plan = make_plan(spec, target);
  const std::vector<Schedule> schedules = tuning_candidates(plan, target, options_.max_candidates, options_.allowed);
  TuningEntry best = entry_of(spec, target, options_.chip->name);
  best.how = options_.how;
  best.compiler = options_.compiler;
  for (const Schedule& schedule : schedules) {
    if (is_over()) return std::nullopt;
    const std::optional<double> us = options_.time(plan, schedule);
    if (!us) continue;
    if (best.tried++ == 0 || *us < best.microseconds) {
      best.microseconds = *us;
      best.schedule = settings_of(schedule);
    }
  }
  if (best.tried == 0)
    throw RejectedError(fmt::format("kernel '{}' for {}: none of {} candidates was timed: each breaks its ISA contract, is too long to be "
                                    "simulated, or was on the GPU when an earlier run ended",
                                    spec.name(), target.arch(), schedules.size()));
  return best;
}

bool Tuner::has(const TuningEntry& e, const KernelSpec& spec, const Target& target) const {
  return e.arch == target.arch() && e.chip == options_.chip->name && e.how == options_.how && e.kiln == kiln_version() &&
         e.compiler == options_.compiler && e.bounds == bounds_of(spec) && e.spec == shape_key(spec);
}

} // namespace kiln
