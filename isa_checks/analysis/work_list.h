// WorkList: the blocks that a fixpoint has still to run, those first from which the others follow. Internal to the analyses.
#pragma once
#include "isa_checks/decode/program.h"
#include <functional>
#include <queue>
#include <vector>

namespace kiln::isa {

class WorkList {
public:
  explicit WorkList(const Program& program)
      : order_(program.order), place_(program.blocks.size(), 0), waits_(program.blocks.size(), false) {
    for (std::size_t n = 0; n < order_.size(); ++n) place_[order_[n]] = n;
  }
  bool empty() const { return places_.empty(); }
  // Reachable blocks only; one that waits already is not added again.
  void add(std::size_t block) {
    if (waits_[block]) return;
    waits_[block] = true;
    places_.push(place_[block]);
  }
  std::size_t take() {
    const std::size_t block = order_[places_.top()];
    places_.pop();
    waits_[block] = false;
    return block;
  }

private:
  const std::vector<std::size_t>& order_; // reverse post-order
  std::vector<std::size_t> place_;        // by block: its place there
  std::vector<bool> waits_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> places_;
};

} // namespace kiln::isa
