// Expert check: offsets against pairs, every pair once.
#include "gen/reference/expert_check.h"
#include "gen/error.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace kiln {

SortedPairs sort_pairs(std::span<const std::int64_t> experts, std::int64_t count) {
  const auto bucket = [&](std::int64_t pair) {
    const std::int64_t expert = experts[static_cast<std::size_t>(pair)];
    return expert < 0 || expert >= count ? count : expert;
  };
  SortedPairs sorted;
  sorted.order.resize(experts.size());
  std::iota(sorted.order.begin(), sorted.order.end(), std::int64_t{0});
  std::ranges::stable_sort(sorted.order, {}, bucket);
  for (std::int64_t e = 0; e <= count; ++e)
    sorted.offsets.push_back(std::ranges::count_if(sorted.order, [&](std::int64_t pair) { return bucket(pair) < e; }));
  return sorted;
}

std::vector<ExpertUse> expert_uses(const KernelSpec& spec) {
  std::vector<ExpertUse> uses;
  for (const Expr& node : nodes_in_order(spec))
    if (info(node.op()).kind == OpKind::experts) uses.push_back({node.operands()[1], node.operands()[2]});
  return uses;
}

std::optional<std::string> first_bad_pair(std::int64_t pairs, std::int64_t experts, const std::function<std::int64_t(std::int64_t)>& order,
                                          const std::function<std::int64_t(std::int64_t)>& offset) {
  if (offset(0) != 0) return fmt::format("offset 0 is {}, and the first expert begins at 0", offset(0));
  for (std::int64_t e = 0; e < experts; ++e)
    if (offset(e + 1) < offset(e))
      return fmt::format("offset {} is {} and offset {} is {}: they must not fall", e, offset(e), e + 1, offset(e + 1));
  if (offset(experts) != pairs)
    return fmt::format("offset {} is {}, and there are {} pairs: each goes to one of the {} experts", experts, offset(experts), pairs,
                       experts);
  std::vector<std::int64_t> place(static_cast<std::size_t>(pairs), -1);
  for (std::int64_t at = 0; at < pairs; ++at) {
    const std::int64_t pair = order(at);
    if (pair < 0 || pair >= pairs) return fmt::format("element {} of the order is {}, and there are {} pairs", at, pair, pairs);
    std::int64_t& known = place[static_cast<std::size_t>(pair)];
    if (known >= 0) return fmt::format("pair {} stands at {} and at {}", pair, known, at);
    known = at;
  }
  return {};
}

void require_sorted_pairs(const KernelSpec& spec, const Inputs& inputs) {
  for (const ExpertUse& use : expert_uses(spec)) {
    const Tensor &order = inputs.tensors.at(use.order->name), &offsets = inputs.tensors.at(use.offsets->name);
    const auto bad = first_bad_pair(
        order.size(), offsets.size() - 1, [&](std::int64_t i) { return order.integer(i); },
        [&](std::int64_t i) { return offsets.integer(i); });
    if (bad)
      throw UserError(fmt::format("pairs '{}' with offsets '{}'", use.order->name, use.offsets->name), *bad,
                      "give what expert_order and expert_offsets make of the experts: the kernel moe_sort");
  }
}

} // namespace kiln
