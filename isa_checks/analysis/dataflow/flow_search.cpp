// The part of a search that heeds what its path has decided.
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/analysis/dataflow/decided_branches.h"
#include <algorithm>

namespace kiln::isa {

FlowSearch::FlowSearch(const Program& program, const std::vector<Operands>& operands, std::int64_t budget)
    : p_(program), operands_(operands), budget_(budget), seen_(program.blocks.size(), 0) {}
FlowSearch::~FlowSearch() = default;

DecidedBranches& FlowSearch::decided() {
  if (!decided_) decided_ = std::make_unique<DecidedBranches>(p_, operands_);
  return *decided_;
}

bool FlowSearch::excluded(const FlowPath& path) { return path.size() > 1 && decided().excludes(path); }
std::uint32_t FlowSearch::facts_at(std::size_t block) { return decided().at(block); }

void FlowSearch::enter_decided(std::size_t at, std::size_t to, unsigned state) {
  constexpr std::size_t max_entries = 24; // of a block; beyond, it is entered once more with nothing decided
  auto facts = decided().take(items_[at].facts, items_[at].block, to);
  if (!facts) return;
  auto& entered = entered_[to];
  if (entered.size() >= max_entries) facts = 0;
  const auto no_less = [&](const auto& before) { return before.first <= state && decided().within(before.second, *facts); };
  if (std::ranges::any_of(entered, no_less)) return;
  entered.emplace_back(state, *facts);
  items_.push_back({to, state, at, *facts});
}

} // namespace kiln::isa
