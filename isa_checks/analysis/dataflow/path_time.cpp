// A wave's clock along one path.
#include "isa_checks/analysis/dataflow/path_time.h"
#include "isa_checks/analysis/issue.h"
#include <algorithm>
#include <array>
#include <deque>
#include <set>

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
  return p.any_around(p.blocks[block].loop, [loop](std::size_t l) { return l == loop; });
}

} // namespace

int min_clocks(const Program& p, const FlowPath& path, std::size_t from, std::size_t to, const TargetFacts& target) {
  WaveClock clock(target);
  int begin = 0, end = 0;
  each_on(p, path, from, to, [&](std::size_t i) {
    end = clock.issue(p.instructions[i]);
    if (i == from && begin == 0) begin = end;
  });
  return end - begin;
}

int operations_on(const Program& p, const FlowPath& path, std::size_t from, std::size_t to, WaitCounter counter) {
  int count = -1; // the first itself
  each_on(p, path, from, to, [&](std::size_t i) {
    const CounterUse use = counter_use(p.instructions[i]);
    count += i != to && (counter == WaitCounter::vmcnt ? use.vm : use.lgkm);
  });
  return count;
}

bool in_step_since_barrier(const Program& p, std::size_t instruction, const std::function<void(std::size_t)>& visit) {
  std::set<std::size_t> seen;
  std::vector<std::pair<std::size_t, std::size_t>> work{{p.block_of(instruction), instruction}}; // block, and where to look back from
  while (!work.empty()) {
    const auto [block, end] = work.back();
    work.pop_back();
    std::size_t i = end;
    for (; i > p.blocks[block].begin; --i) {
      const Instruction& before = p.instructions[i - 1];
      if (before.kind == InstructionClass::barrier) break;
      const auto wait = wait_counts(before);
      if ((wait && wait->vmcnt) || before.kind == InstructionClass::smem || before.flow == Flow::call) return false;
      visit(i - 1);
    }
    if (i > p.blocks[block].begin) continue; // a barrier
    if (block == p.entry) return false;
    for (const std::size_t from : p.blocks[block].predecessors)
      if (p.blocks[from].reachable && seen.insert(from).second) work.push_back({from, p.blocks[from].end});
  }
  return true;
}

bool barrier_on(const Program& p, const FlowPath& path, std::size_t from, std::size_t to) {
  bool found = false;
  each_on(p, path, from, to, [&](std::size_t i) { found = found || p.instructions[i].mnemonic == "s_barrier"; });
  return found;
}

namespace {

// Calls `visit` with the block of each branch that conditions_on counts.
template <class Visit> void each_condition(const Program& p, const FlowPath& path, Visit visit) {
  for (std::size_t n = 0; n + 1 < path.size(); ++n) {
    const Block& block = p.blocks[path[n]];
    if (p.instructions[block.end - 1].flow != Flow::branch) continue;
    bool stays = false;
    for (std::size_t l = block.loop; l != nothing && !stays; l = p.loops[l].parent)
      stays = in_loop(p, path[n + 1], l) && std::ranges::any_of(block.successors, [&](std::size_t s) { return !in_loop(p, s, l); });
    if (!stays) visit(block);
  }
}

} // namespace

int conditions_on(const Program& p, const FlowPath& path) {
  int conditions = 0;
  each_condition(p, path, [&](const Block&) { ++conditions; });
  return conditions;
}

bool compares_scalars(const Program& p, const FlowPath& path) {
  bool found = false;
  each_condition(p, path, [&](const Block& block) {
    if (!p.instructions[block.end - 1].mnemonic.starts_with("s_cbranch_scc")) return;
    for (std::size_t i = block.end - 1; i > block.begin && !found; --i) {
      found = p.instructions[i - 1].mnemonic.starts_with("s_cmp");
      if (p.instructions[i - 1].use.writes_any({reg::scc, 1})) break;
    }
  });
  return found;
}

} // namespace kiln::isa
