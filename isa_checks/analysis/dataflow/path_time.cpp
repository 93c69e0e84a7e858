// A wave's clock along one path.
#include "isa_checks/analysis/dataflow/path_time.h"
#include "isa_checks/analysis/issue.h"
#include <algorithm>
#include <array>
#include <deque>

namespace kiln::isa {
namespace {

class WaveClock {
public:
  explicit WaveClock(const TargetFacts& target) : target_(target) {}

  // Returns the clock at which the instruction issues.
  int issue(const Instruction& instruction) {
    if (const auto wait = wait_counts(instruction)) {
      complete(memory_, wait->vmcnt, memory_latency_clocks(target_));
      complete(lds_, wait->lgkmcnt, target_.lds_latency_clocks);
    }
    const InstructionCost cost = instruction_cost(instruction, nullptr, target_);
    int& free = free_[static_cast<std::size_t>(cost.pipe == Pipe::trans ? Pipe::valu : cost.pipe)];
    const bool queues = cost.pipe == Pipe::lds || cost.pipe == Pipe::vector_memory; // they take operations up before they are done
    if (!queues) now_ = std::max(now_, free);
    const int at = now_;
    free = at + static_cast<int>(cost.clocks);
    now_ += issue_clocks * std::max(1, nop_states(instruction));
    note(instruction, at);
    return at;
  }

private:
  static int nop_states(const Instruction& instruction) { return instruction.mnemonic == "s_nop" ? (instruction.bytes[0] & 15) + 1 : 0; }

  void note(const Instruction& instruction, int at) {
    const CounterUse use = counter_use(instruction);
    if (use.unordered || use.gds) return;
    if (use.vm) memory_.push_back(at);
    if (use.lgkm) lds_.push_back(at);
  }

  // All but the youngest `left` are back.
  void complete(std::deque<int>& issued, std::optional<int> left, int latency) {
    while (left && issued.size() > static_cast<std::size_t>(*left)) {
      now_ = std::max(now_, issued.front() + latency);
      issued.pop_front();
    }
  }

  const TargetFacts& target_;
  int now_ = 0;
  std::array<int, pipe_count> free_{};
  std::deque<int> memory_, lds_; // when they were issued
};

// The instructions of a path from one to another, both included.
template <class Visit> void each_on(const Program& p, const FlowPath& path, std::size_t from, std::size_t to, Visit visit) {
  for (std::size_t n = 0; n < path.size(); ++n) {
    const bool last = n + 1 == path.size();
    const Block& block = p.blocks[path[n]];
    for (std::size_t i = n == 0 ? from : block.begin; i < block.end; ++i) {
      visit(i);
      if (last && i == to && (n > 0 || i != from)) return;
    }
  }
}

bool in_loop(const Program& p, std::size_t block, std::size_t loop) {
  for (std::size_t l = p.blocks[block].loop; l != nothing; l = p.loops[l].parent)
    if (l == loop) return true;
  return false;
}

} // namespace

int least_clocks(const Program& p, const FlowPath& path, std::size_t from, std::size_t to, const TargetFacts& target) {
  WaveClock clock(target);
  int begin = 0, end = 0;
  each_on(p, path, from, to, [&](std::size_t i) {
    end = clock.issue(p.instructions[i]);
    if (i == from && begin == 0) begin = end;
  });
  return end - begin;
}

bool barrier_on(const Program& p, const FlowPath& path, std::size_t from, std::size_t to) {
  bool found = false;
  each_on(p, path, from, to, [&](std::size_t i) { found = found || p.instructions[i].mnemonic == "s_barrier"; });
  return found;
}

int conditions_on(const Program& p, const FlowPath& path) {
  int conditions = 0;
  for (std::size_t n = 0; n + 1 < path.size(); ++n) {
    const Block& block = p.blocks[path[n]];
    if (p.instructions[block.end - 1].flow != Flow::branch) continue;
    bool stays = false;
    for (std::size_t l = block.loop; l != nothing && !stays; l = p.loops[l].parent)
      stays = in_loop(p, path[n + 1], l) && std::ranges::any_of(block.successors, [&](std::size_t s) { return !in_loop(p, s, l); });
    conditions += !stays;
  }
  return conditions;
}

} // namespace kiln::isa
