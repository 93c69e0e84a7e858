// Schedule: the candidates of a plan's family, checked, and changed by name.
#include "gen/families/schedule.h"
#include "gen/error.h"
#include "gen/families/common/fields.h"
#include "gen/families/knobs.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace kiln {
namespace {

std::vector<Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) settings.push_back(parse_setting(text));
  return settings;
}

// A UserError when no schedule of the plan is batch-invariant.
SumOrder wanted_order(const Plan& plan, const Target& target) {
  SumOrder order = plan.family->invariant_order(plan, target);
  if (!order.depends_on.empty())
    throw UserError(fmt::format("batch invariance of kernel '{}'", plan.spec.name()), order.depends_on,
                    "compile it without batch_invariant, or compute that part in a kernel of its own");
  return order;
}

std::optional<Refusal> why_not_in_order(const Schedule& schedule, const SumOrder& wanted, const Plan& plan, const Target& target) {
  const SumOrder own = plan.family->sum_order(plan, schedule, target);
  if (own == wanted) return {};
  const std::string fact =
      own.depends_on.empty() ? fmt::format("its sums are taken as \"{}\", those of every bound of rows as \"{}\"", own.order, wanted.order)
                             : "its sums depend on the batch: " + own.depends_on;
  return refuse_schedule(plan, fact + "; the kernel is to be batch-invariant",
                         "leave out the settings that change the order, or batch_invariant");
}

std::optional<Refusal> why_not_of_family(const Schedule& schedule, const Plan& plan, const Target& target) {
  if (schedule.family != plan.family)
    return refuse_schedule(plan, fmt::format("it is {}, the plan is {}", schedule.family->name, plan.family->name),
                           "make the schedule for this plan");
  return plan.family->why_not(schedule, plan, target);
}

// The least nominal_cost first; of equal ones the order stays.
std::vector<Schedule> by_cost(std::vector<Schedule> schedules, const Plan& plan, const Target& target) {
  std::vector<std::pair<double, Schedule>> with_cost;
  for (Schedule& s : schedules) {
    const double cost = nominal_cost(plan, s, target);
    with_cost.emplace_back(cost, std::move(s));
  }
  std::ranges::stable_sort(with_cost, {}, &std::pair<double, Schedule>::first);
  for (std::size_t i = 0; i < with_cost.size(); ++i) schedules[i] = std::move(with_cost[i].second);
  return schedules;
}

} // namespace

Refusal refuse_schedule(const Plan& plan, std::string fact, std::string remedy) {
  return {fmt::format("schedule of '{}'", plan.spec.name()), std::move(fact), std::move(remedy)};
}

Cost cost_of(const Plan& plan, const Schedule& schedule, const Target& target, const RunTimeSizes& sizes) {
  const std::optional<Demand> demand = plan.family->demand(plan, schedule, target, sizes);
  return demand ? cost_of(*demand, target.chip()) : Cost{};
}

double nominal_cost(const Plan& plan, const Schedule& schedule, const Target& target) {
  double sum = 0;
  const std::vector<RunTimeSizes> all = nominal_sizes(plan);
  for (const RunTimeSizes& sizes : all) sum += std::log(cost_of(plan, schedule, target, sizes).total());
  return std::exp(sum / static_cast<double>(all.size()));
}

std::vector<Schedule> candidates(const Plan& plan, const Target& target) {
  std::vector<Schedule> result = plan.family->candidates(plan, target);
  const Schedule last = result.back();
  const std::optional<SumOrder> wanted = target.batch_invariant() ? std::optional(wanted_order(plan, target)) : std::nullopt;
  std::erase_if(result, [&](const Schedule& s) {
    return why_not_of_family(s, plan, target) || (wanted && why_not_in_order(s, *wanted, plan, target));
  });
  if (result.empty()) require_valid(last, plan, target); // says why
  return by_cost(std::move(result), plan, target);
}

std::vector<Schedule> candidates(const Plan& plan, const Target& target, const std::vector<std::string>& settings) {
  std::vector<Schedule> result = candidates(plan, target);
  const std::vector<std::string> fields = without_knobs(result.front(), settings);
  if (!settings.empty()) result = {with_overrides(result.front(), fields, plan, target)};
  for (Schedule& fallback : plan.family->fallbacks(result.front(), parse_settings(fields))) {
    if (why_not(fallback, plan, target)) continue;
    fallback.why = fmt::format("{}; {}, as what was better broke the ISA contract", result.front().why, fallback.why);
    result.push_back(std::move(fallback));
  }
  return result;
}

std::vector<Schedule> tuning_candidates(const Plan& plan, const Target& target, int most, const Allowed& allowed) {
  const Family& family = *plan.family;
  const std::vector<Schedule> all = candidates(plan, target);
  const std::size_t first = most > 0 ? std::min(all.size(), static_cast<std::size_t>(most)) : all.size();
  std::vector<Schedule> result(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
  if (!family.other_methods) return result;
  std::map<std::string_view, int> tried;
  for (const Schedule& s : result) ++tried[family.method(s)];
  const auto add = [&](std::vector<Schedule> others) {
    std::erase_if(others, [&](const Schedule& s) { return why_not(s, plan, target).has_value(); });
    for (Schedule& s : by_cost(std::move(others), plan, target)) {
      if (std::ranges::find(result, s.config, &Schedule::config) != result.end() || tried[family.method(s)]++ >= tuned_each) continue;
      result.push_back(std::move(s));
    }
  };
  add({all.begin() + static_cast<std::ptrdiff_t>(first), all.end()});
  std::vector<Schedule> others;
  for (const Schedule& s : all)
    for (Schedule& other : family.other_methods(s, target, allowed))
      if (std::ranges::find(others, other.config, &Schedule::config) == others.end()) others.push_back(std::move(other));
  add(std::move(others));
  return result;
}

Schedule choose_schedule(const Plan& plan, const Target& target) { return candidates(plan, target).front(); }

std::optional<Refusal> why_not(const Schedule& schedule, const Plan& plan, const Target& target) {
  if (auto refusal = why_not_of_family(schedule, plan, target); refusal || !target.batch_invariant()) return refusal;
  return why_not_in_order(schedule, wanted_order(plan, target), plan, target);
}

void require_valid(const Schedule& schedule, const Plan& plan, const Target& target) {
  if (const auto refusal = why_not(schedule, plan, target)) throw UserError(*refusal);
}

Schedule with_overrides(Schedule schedule, const std::vector<std::string>& settings, const Plan& plan, const Target& target) {
  if (!settings.empty()) {
    schedule.family->set(schedule, parse_settings(without_knobs(schedule, settings)), plan, target);
    schedule.why = "set by hand";
  }
  require_valid(schedule, plan, target);
  return schedule;
}

std::vector<std::string> settings_of(const Schedule& schedule) { return schedule.family->settings(schedule); }

KernelSource emit_source(const Plan& plan, const Schedule& schedule, const Target& target) {
  require_valid(schedule, plan, target);
  return plan.family->emit(plan, schedule, target);
}

Promises promises(const Plan& plan, const Schedule& schedule, const Target& target) {
  return plan.family->promises(plan, schedule, target);
}

std::optional<std::int64_t> addition_depth(const Schedule& schedule) { return schedule.family->addition_depth(schedule); }

SumOrder sum_order(const Plan& plan, const Schedule& schedule, const Target& target) {
  return plan.family->sum_order(plan, schedule, target);
}

SumOrder invariant_order(const Plan& plan, const Target& target) {
  return plan.family->invariant_order(plan, target.with_batch_invariance());
}

std::string to_text(const Schedule& schedule) {
  return fmt::format("schedule {}: {}\n  why: {}\n", schedule.family->name, schedule.family->fields_text(schedule), schedule.why);
}

} // namespace kiln
