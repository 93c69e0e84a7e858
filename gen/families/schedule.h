// Schedule: how a plan runs on a target. Named numbers, no text.
#pragma once
#include "gen/families/make_plan.h"
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kiln {

using Config = RegisteredFamilies::Config; // a variant of the configs in families.def

struct Schedule {
  const Family* family = nullptr; // the plan's
  Config config;                  // of that family
  std::string why = {};           // one line: what decided
  bool operator==(const Schedule&) const = default;
};

// A problem of a fused launch, by the name of its first output, with its schedule as its own family has it.
struct ProblemSchedule {
  std::string name = {};
  Schedule schedule;
  int threads() const { return schedule.family->threads(schedule); }
  bool operator==(const ProblemSchedule&) const = default;
};

// What a launch of the schedule takes, by the closed form of gen/families/common/cost.h, on the largest chip of the target; zero for a
// family of one candidate, which needs no order.
Cost cost_of(const Plan& plan, const Schedule& schedule, const Target& target, const RunTimeSizes& sizes);
// Nanoseconds: the geometric mean over nominal_sizes(plan).
double nominal_cost(const Plan& plan, const Schedule& schedule, const Target& target);

// Valid schedules for `plan`, the least nominal_cost first; of equal ones the family's first. Never empty. Throws UserError when no
// schedule is valid.
std::vector<Schedule> candidates(const Plan& plan, const Target& target);
// What is tried one after another: the candidates, or with `settings` the first of them as with_overrides changes it; and last
// what the family falls back to when the compiler needs more registers than was estimated. Throws what with_overrides throws.
// Never empty.
std::vector<Schedule> candidates(const Plan& plan, const Target& target, const std::vector<std::string>& settings);
// What a tuner tries: the first `most` of the candidates (0: all), and up to `tuned_each` schedules of every other method that can compute
// the plan, for the cost model orders schedules of a method better than methods. Candidates that have the method come first, then
// candidates with the method in place of theirs, the least nominal_cost first.
inline constexpr int tuned_each = 2;
std::vector<Schedule> tuning_candidates(const Plan& plan, const Target& target, int most, const Allowed& allowed);
Schedule choose_schedule(const Plan& plan, const Target& target); // the first of them

// Why a schedule cannot run a plan: the config is invalid in itself, or does not fit the plan (columns, group sizes, LDS of the target, an
// in-place output whose input would be read again), or that its sums have another order than the target's batch-invariant ones. Nothing
// when it can; require_valid throws it.
std::optional<Refusal> why_not(const Schedule& schedule, const Plan& plan, const Target& target);
void require_valid(const Schedule& schedule, const Plan& plan, const Target& target);

// Replaces fields by name: {"threads_per_row=512", "residency=lds"}; knobs of gen/families/knobs.h too. Throws UserError on unknown names
// and bad values, and require_valid's.
Schedule with_overrides(Schedule schedule, const std::vector<std::string>& settings, const Plan& plan, const Target& target);

// {"vec=8", "threads=256"}: with_overrides of any schedule of the plan with these gives this one.
std::vector<std::string> settings_of(const Schedule& schedule);

// The kernel as HIP text that calls the verbs of templates/. Validates the schedule first. Equal for equal inputs on every machine.
KernelSource emit_source(const Plan& plan, const Schedule& schedule, const Target& target);

// What the code of a valid schedule keeps to.
Promises promises(const Plan& plan, const Schedule& schedule, const Target& target);

// The most f32 additions that an element passes through in a sum of a kernel with this schedule; nothing when the order of a
// sum is not known.
std::optional<std::int64_t> addition_depth(const Schedule& schedule);

// The order of a row's sums by a schedule, and the one that batch-invariant schedules of the plan have.
SumOrder sum_order(const Plan& plan, const Schedule& schedule, const Target& target);
SumOrder invariant_order(const Plan& plan, const Target& target);

std::string to_text(const Schedule& schedule); // "schedule rowwise: cols=16384 vec=8 ..."

} // namespace kiln
