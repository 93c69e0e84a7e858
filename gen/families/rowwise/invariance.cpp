// Batch invariance of rows: the order of a row's sums, and the one that all bounds of rows have.
#include "gen/families/rowwise/cluster.h"
#include "gen/families/rowwise/rowwise.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace kiln {
namespace {

constexpr double reference_rows = 16; // for which the schedule is chosen: as for products

bool reduces(const Body& body) {
  return std::ranges::any_of(body.values, [](const Value& v) { return v.level > 0; });
}

// What passes compute anew may be contracted otherwise than what is kept: the residency counts too.
std::string order_of(const Body& body, const RowwiseConfig& c) {
  if (!reduces(body) && body.group_sizes.empty()) return {};
  if (!reduces(body)) return fmt::format("groups by {}", c.vec);
  return fmt::format("rows by {} in {} lanes, {}", c.vec, c.threads_per_row, to_string(c.residency));
}

} // namespace

RowwiseConfig invariant_rows(const Plan& plan, const Target& target, int threads) {
  RowwiseConfig best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [any, why] : Rowwise::candidates(plan, target)) {
    const RowwiseConfig config = threads ? Rowwise::with_threads(any, threads, plan, target) : any;
    if (is_cluster(plan.body, config) || Rowwise::why_not(config, plan, target)) continue;
    const double cost = cost_of(demand_of_rows(plan.body, config, target, reference_rows), target.chip()).total();
    if (cost < least) least = cost, best = config;
  }
  return best;
}

SumOrder Rowwise::sum_order(const Plan& plan, const Config& c, const Target&) {
  if (!is_cluster(plan.body, c)) return {.order = order_of(plan.body, c)};
  return {.order = fmt::format("{}, {} workgroups a row", order_of(plan.body, c), c.tiles),
          .depends_on = "workgroups share a row, as the bound of rows says that there are few"};
}

SumOrder Rowwise::invariant_order(const Plan& plan, const Target& target) {
  return {.order = order_of(plan.body, invariant_rows(plan, target))};
}

} // namespace kiln
