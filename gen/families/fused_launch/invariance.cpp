// Batch invariance of fused launches: the orders of all problems. Products have those that they have alone.
#include "gen/families/fused_launch/problem.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// What each problem adds, by its name.
void add_order(SumOrder& all, const std::string& name, const SumOrder& own) {
  if (!own.order.empty()) all.order += fmt::format("{}{}: {}", all.order.empty() ? "" : "; ", name, own.order);
  if (!own.depends_on.empty() && all.depends_on.empty()) all.depends_on = fmt::format("'{}': {}", name, own.depends_on);
}

bool is_rowwise(const Plan& problem) { return problem.family->name == Rowwise::name; }

} // namespace

// Waves of products share their steps, so that rows take as many; without products, as many as the longest rows have alone.
int invariant_threads(const Plan& plan, const Target& target) {
  int threads = 0;
  for (const auto& problem : plan.problems) {
    if (is_product(*problem)) return planned_config(*problem, target).threads();
    if (is_rowwise(*problem)) threads = std::max(threads, invariant_rows(*problem, target).threads());
  }
  return threads;
}

SumOrder invariant_order_of(const Plan& problem, int threads, const Target& target) {
  if (!is_rowwise(problem)) return problem.family->invariant_order(problem, target);
  return Rowwise::sum_order(problem, invariant_rows(problem, target, threads), target);
}

SumOrder FusedLaunch::sum_order(const Plan& plan, const Config& c, const Target& target) {
  SumOrder all;
  for (std::size_t i = 0; i < c.problems.size(); ++i)
    add_order(all, c.problems[i].name, plan.problems[i]->family->sum_order(*plan.problems[i], c.problems[i].schedule, target));
  return all;
}

SumOrder FusedLaunch::invariant_order(const Plan& plan, const Target& target) {
  SumOrder all;
  const int threads = invariant_threads(plan, target);
  for (const auto& problem : plan.problems) add_order(all, name_of(*problem), invariant_order_of(*problem, threads, target));
  return all;
}

} // namespace kiln
