// A forward fixpoint over the registers that differ, in turns with the blocks that branches on them reach, until neither grows.
#include "isa_checks/analysis/dataflow/wave_uniform.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <cstdint>
#include <string_view>

namespace kiln::isa {
namespace {

class PostDominators {
public:
  explicit PostDominators(const Program& p) : p_(p), next_(p.blocks.size(), nothing), place_(p.blocks.size(), nothing) {
    for (std::size_t n = 0; n < p.order.size(); ++n) place_[p.order[n]] = n;
    const std::size_t end = p.blocks.size(); // behind every end of the kernel
    for (bool changed = true; changed;) {
      changed = false;
      for (auto at = p.order.rbegin(); at != p.order.rend(); ++at) {
        std::size_t best = p.blocks[*at].successors.empty() ? end : nothing;
        for (const std::size_t to : p.blocks[*at].successors)
          if (to == best || next_[to] != nothing) best = best == nothing ? to : meet(best, to);
        changed = changed || best != next_[*at];
        next_[*at] = best;
      }
    }
  }
  // The nearest block that all ways from this one lead to; the number of blocks: the end; nothing: no way ends.
  std::size_t behind(std::size_t block) const { return next_[block]; }

private:
  std::size_t meet(std::size_t a, std::size_t b) const {
    const auto later = [&](std::size_t x) { return x >= place_.size() ? p_.order.size() : place_[x]; };
    for (std::size_t steps = 0; a != b && steps <= 2 * p_.blocks.size(); ++steps) {
      std::size_t& nearer = later(a) < later(b) ? a : b;
      if (nearer >= next_.size() || next_[nearer] == nothing) return p_.blocks.size();
      nearer = next_[nearer];
    }
    return a == b ? a : p_.blocks.size();
  }

  const Program& p_;
  std::vector<std::size_t> next_, place_;
};

class Finder {
public:
  Finder(const Program& p) : p_(p), behind_(p), parted_(p.blocks.size(), false), touched_(p.blocks.size(), false) {}

  std::vector<bool> run() {
    constexpr int max_rounds = 8; // each makes regions larger; what needs more is given up
    bool settled = false;
    for (int round = 0; round < max_rounds && !settled; ++round) {
      solve();
      settled = !mark_regions() && budget_ >= 0;
    }
    std::vector<bool> result(p_.blocks.size(), false);
    for (std::size_t b = 0; settled && b < result.size(); ++b) result[b] = p_.blocks[b].reachable && !parted_[b];
    return result;
  }

private:
  static bool own_of_wave(std::string_view m) {
    return m.starts_with("s_getreg") || m.starts_with("s_memtime") || m.starts_with("s_memrealtime") || m.starts_with("s_get_waveid");
  }

  void step(std::size_t i, bool touched, RegisterSet& differs) const {
    const Instruction& instruction = p_.instructions[i];
    const auto any = [&](std::span<const RegisterRange> list) {
      return std::ranges::any_of(list, [&](RegisterRange r) { return differs.any(r); });
    };
    const bool vector = std::ranges::any_of(p_.instructions[i].use.writes(), [](RegisterRange w) { return w.vector(); });
    const bool atomic = instruction.memory && instruction.memory->direction == MemoryDirection::atomic;
    const bool result = touched || atomic || own_of_wave(instruction.mnemonic) || any(p_.instructions[i].use.reads()) ||
                        (vector && differs.any({reg::exec, 2})) || instruction.flow == Flow::call;
    for (const RegisterRange w : p_.instructions[i].use.writes())
      if (result) differs.set(w);
      else differs.clear(w);
  }

  void solve() {
    in_.assign(p_.blocks.size(), RegisterSet());
    out_.assign(p_.blocks.size(), RegisterSet());
    std::vector<bool> waits(p_.blocks.size(), true);
    in_[p_.entry].set(std::size_t{reg::vgpr});
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::size_t b : p_.order) {
        if (!waits[b]) continue;
        waits[b] = false;
        RegisterSet state = in_[b];
        for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) step(i, touched_[b], state);
        out_[b] = state;
        for (const std::size_t to : p_.blocks[b].successors)
          if (in_[to].join(state, false)) waits[to] = changed = true;
      }
    }
  }

  // Marks what lies between each branch that parts the waves and where its ways meet. True when that grew.
  bool mark_regions() {
    bool grew = false;
    for (const std::size_t b : p_.order) {
      const Instruction& last = p_.instructions[p_.blocks[b].end - 1];
      if (last.flow != Flow::branch) continue;
      const std::string_view m = last.mnemonic;
      const RegisterRange decides = m.starts_with("s_cbranch_scc")   ? RegisterRange{reg::scc, 1}
                                    : m.starts_with("s_cbranch_vcc") ? RegisterRange{reg::vcc, 2}
                                                                     : RegisterRange{reg::exec, 2};
      if (!out_[b].any(decides)) continue;
      const bool over_lanes = m == "s_cbranch_execz" && last.branch_target && *last.branch_target > last.address;
      grew = mark(b, over_lanes) || grew;
    }
    return grew;
  }

  bool mark(std::size_t branch, bool over_lanes) {
    const std::size_t end = behind_.behind(branch);
    bool grew = false;
    std::vector<bool> seen(p_.blocks.size(), false);
    std::vector<std::size_t> work(p_.blocks[branch].successors);
    while (!work.empty()) {
      const std::size_t b = work.back();
      work.pop_back();
      if (b == end || seen[b] || --budget_ < 0) continue;
      seen[b] = true;
      grew = grew || !touched_[b] || (!over_lanes && !parted_[b]);
      touched_[b] = true;
      if (!over_lanes) parted_[b] = true;
      work.insert(work.end(), p_.blocks[b].successors.begin(), p_.blocks[b].successors.end());
    }
    return grew;
  }

  const Program& p_;
  const PostDominators behind_;
  std::int64_t budget_ = 20'000'000;   // blocks visited; hostile code ends there, and nothing is claimed of it
  std::vector<bool> parted_, touched_; // by block: not all waves execute it; not all lanes or waves do
  std::vector<RegisterSet> in_, out_;  // by block: registers that may differ between waves
};

} // namespace

std::vector<bool> blocks_of_all_waves(const Program& program) {
  constexpr std::size_t max_blocks = 20'000; // post-dominators of hostile graphs take the square of it
  if (program.blocks.empty() || program.blocks.size() > max_blocks || program.calls + program.indirect_branches > 0 || program.function)
    return std::vector<bool>(program.blocks.size(), false);
  return Finder(program).run();
}

} // namespace kiln::isa
