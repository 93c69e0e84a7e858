// FlowSearch: walks the flow graph forward from one instruction until something happens, and keeps the way there. Internal to the
// data-flow analyses.
#pragma once
#include "isa_checks/analysis/dataflow/decided_branches.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kiln::isa {

enum class FlowStep : std::uint8_t { go_on, stop, found };

class FlowSearch {
public:
  // `budget`: instructions looked at in all runs together. Hostile code ends there; real kernels stay far below.
  FlowSearch(const Program& program, const std::vector<Operands>& operands, std::int64_t budget = 50'000'000)
      : p_(program), operands_(operands), budget_(budget), seen_(program.blocks.size(), 0) {}

  bool exhausted() const { return budget_ <= 0; }

  // Calls step(instruction, state) for what follows `start`, nearest blocks first. `state`, from 0 to 63, belongs to the path; step
  // may change it. A block is entered again only with a state below all those with which it was entered before: smaller states
  // must be able to find whatever larger ones can. Returns the path to what was found, or an empty one. A path that takes a branch
  // against what it has decided before is none: the search goes on without it.
  template <class Step> FlowPath run(std::size_t start, unsigned state, Step step) {
    FlowPath path = search(start, state, step, false);
    if (path.size() < 2 || !decided().excludes(path)) return path;
    return search(start, state, step, true);
  }

private:
  static constexpr std::size_t none = nothing;
  struct Item {
    std::size_t block;
    unsigned state;
    std::size_t from;    // item
    std::uint32_t facts; // DecidedBranches::Facts at the beginning of the block
  };

  template <class Step> FlowPath search(std::size_t start, unsigned state, Step& step, bool heeds) {
    items_.assign(1, {p_.block_of(start), state, none, heeds ? decided().at(p_.block_of(start)) : 0});
    FlowPath path;
    for (std::size_t at = 0; at < items_.size() && path.empty() && !exhausted(); ++at) {
      const std::size_t begin = at == 0 ? start + 1 : p_.blocks[items_[at].block].begin;
      path = walk(at, begin, step, heeds);
    }
    for (const Item& item : items_) {
      seen_[item.block] = 0;
      if (heeds) entered_.erase(item.block);
    }
    return path;
  }

  template <class Step> FlowPath walk(std::size_t at, std::size_t i, Step& step, bool heeds) {
    unsigned state = items_[at].state;
    const Block& block = p_.blocks[items_[at].block];
    for (; i < block.end; ++i) {
      --budget_;
      const Flow flow = p_.instructions[i].flow;
      const FlowStep verdict = step(i, state);
      if (verdict == FlowStep::found) return path_to(at);
      if (verdict == FlowStep::stop || flow == Flow::call || flow == Flow::indirect) return {};
    }
    for (const std::size_t to : block.successors) {
      if (heeds) {
        enter_decided(at, to, state);
        continue;
      }
      std::uint64_t& seen = seen_[to];
      if (seen != 0 && static_cast<unsigned>(std::countr_zero(seen)) <= state) continue;
      seen |= std::uint64_t{1} << state;
      items_.push_back({to, state, at, 0});
    }
    return {};
  }

  FlowPath path_to(std::size_t at) const {
    FlowPath path;
    for (; at != none; at = items_[at].from) path.insert(path.begin(), items_[at].block);
    return path;
  }

  DecidedBranches& decided() { // made when a path is found
    if (!decided_) decided_.emplace(p_, operands_);
    return *decided_;
  }

  // Goes on to a block, unless what the path has decided excludes it, or the block was entered with no more facts and no larger
  // state before.
  void enter_decided(std::size_t at, std::size_t to, unsigned state) {
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

  const Program& p_;
  const std::vector<Operands>& operands_;
  std::int64_t budget_;
  std::vector<std::uint64_t> seen_; // by block: the states with which it was entered
  std::vector<Item> items_;
  std::optional<DecidedBranches> decided_;
  std::map<std::size_t, std::vector<std::pair<unsigned, std::uint32_t>>> entered_; // by block: states and facts
};

} // namespace kiln::isa
