// The wait analysis: a forward data-flow fixpoint over the blocks, then a second look at each loop alone.
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/analysis/waits/wait_state.h"
#include "isa_checks/analysis/work_list.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

namespace kiln::isa {
namespace {

constexpr std::uint32_t lanes = wave_size;
// A loop's state settles when the counters' queues are full at the latest.
constexpr int max_rounds = 64;
// The budget of the whole analysis: instructions walked, and places of queues joined or shifted. A matrix product of 1,100
// instructions with nested rings of loads takes 9 million; 100 million take about half a second.
constexpr std::int64_t work_budget = 100'000'000;

class Analyser {
public:
  explicit Analyser(const Program& program) : p_(program), in_(program.blocks.size()) {
    uses_.reserve(program.instructions.size());
    for (const Instruction& instruction : program.instructions) uses_.push_back(counter_use(instruction));
    find_actions();
  }

  WaitAnalysis run() {
    result_.approximate = p_.calls + p_.indirect_branches + p_.wild_branches > 0 || !p_.irreducible_edges.empty();
    if (p_.blocks.empty()) return std::move(result_);
    solve();
    for (std::size_t b = 0; b < p_.blocks.size() && !exhausted(); ++b)
      if (in_[b]) walk(b, *in_[b], [this](std::size_t i, const WaitState& state) { add_points(i, state); });
    for (std::size_t l = 0; l < p_.loops.size(); ++l) result_.loops.push_back(flight(l));
    if (exhausted()) {
      result_.complete = false;
      result_.points.clear();
      for (LoopFlight& loop : result_.loops) loop.min_bytes = loop.max_bytes = loop.max_back_bytes = loop.drains = 0;
    }
    return std::move(result_);
  }

  std::vector<OutstandingCounts> counts() {
    std::vector<OutstandingCounts> result(p_.instructions.size());
    if (p_.blocks.empty()) return result;
    solve();
    for (std::size_t b = 0; b < p_.blocks.size(); ++b)
      if (in_[b])
        walk(b, *in_[b], [&](std::size_t i, const WaitState& state) {
          const auto& [vm, lgkm, exp] = state.queues;
          result[i] = {true, vm.least, vm.most, lgkm.least, lgkm.most, exp.least, exp.most};
        });
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) // between the looks nothing changes
      for (std::size_t i = p_.blocks[b].begin + 1; i < p_.blocks[b].end; ++i)
        if (!result[i].reached) result[i] = result[i - 1];
    return result;
  }

private:
  bool exhausted() const { return work_ > work_budget; }

  static std::int64_t size_of(const WaitState& state) {
    std::int64_t size = 1;
    for (const CounterQueue& queue : state.queues) size += static_cast<std::int64_t>(queue.places.size());
    return size;
  }

  // An instruction that does something to the counters; most do not.
  struct Action {
    std::size_t instruction = 0;
    CounterUse use;
    std::array<int, wait_counter_count> waits{-1, -1, -1}; // for how many of each counter; -1: not
    bool acts() const { return use.vm || use.lgkm || use.exp || std::ranges::max(waits) >= 0; }
  };

  void find_actions() {
    for (const Block& block : p_.blocks) {
      first_action_.push_back(actions_.size());
      for (std::size_t i = block.begin; i < block.end; ++i) {
        const Instruction& instruction = p_.instructions[i];
        Action action{.instruction = i, .use = uses_[i]};
        if (const auto counts = wait_counts(instruction)) {
          action.waits = {counts->vmcnt.value_or(-1), counts->lgkmcnt.value_or(-1), counts->expcnt.value_or(-1)};
        } else if (instruction.flow == Flow::call) { // functions wait for everything first (AMDGPUUsage, "Non-Kernel Functions")
          action.waits = {0, 0, 0};
        }
        if (action.acts()) actions_.push_back(action);
      }
    }
    first_action_.push_back(actions_.size());
  }

  // Runs a block's instructions; `look` sees the state before each that acts, and before each other at which the state is
  // new. Returns the state at the end. Not `timed`: the clock stands still.
  template <class Look> WaitState walk(std::size_t block, WaitState state, Look look, bool timed = true) const {
    const std::int32_t tick = timed ? 1 : 0;
    std::size_t at = p_.blocks[block].begin;
    const std::size_t last = first_action_[block + 1];
    for (std::size_t a = first_action_[block]; a < last && !exhausted(); ++a) {
      const Action& action = actions_[a];
      if (action.instruction > at) look(at, state);
      state.clock += tick * static_cast<std::int32_t>(action.instruction - at);
      work_ += size_of(state);
      look(action.instruction, state);
      for (std::size_t counter = 0; counter < wait_counter_count; ++counter)
        if (action.waits[counter] >= 0) state.wait(static_cast<WaitCounter>(counter), action.waits[counter], sets_);
      state.issue(static_cast<std::uint32_t>(action.instruction), action.use, sets_);
      state.clock += tick;
      at = action.instruction + 1;
    }
    if (at < p_.blocks[block].end) look(at, state);
    state.clock += tick * static_cast<std::int32_t>(p_.blocks[block].end - at);
    state.end_block();
    return state;
  }
  WaitState walk(std::size_t block, const WaitState& state, bool timed = true) const {
    return walk(block, state, [](std::size_t, const WaitState&) {}, timed);
  }

  void solve() {
    WorkList work(p_);
    work.add(p_.entry);
    in_[p_.entry] = WaitState{};
    while (!work.empty() && !exhausted()) {
      const std::size_t b = work.take();
      const WaitState out = walk(b, *in_[b]);
      work_ += size_of(out) * static_cast<std::int64_t>(1 + p_.blocks[b].successors.size());
      for (const std::size_t to : p_.blocks[b].successors) {
        bool changed = !in_[to];
        if (changed) in_[to] = out;
        else changed = in_[to]->join(out, sets_);
        if (changed) work.add(to);
      }
    }
  }

  void add_points(std::size_t index, const WaitState& state) {
    const auto counts = wait_counts(p_.instructions[index]);
    if (!counts) return;
    if (counts->vmcnt) add_point(index, WaitCounter::vmcnt, *counts->vmcnt, state);
    if (counts->lgkmcnt) add_point(index, WaitCounter::lgkmcnt, *counts->lgkmcnt, state);
    if (counts->expcnt) add_point(index, WaitCounter::expcnt, *counts->expcnt, state);
  }

  void add_point(std::size_t index, WaitCounter counter, int value, const WaitState& state) {
    const CounterQueue& queue = state.queues[static_cast<std::size_t>(counter)];
    WaitPoint point{.instruction = index,
                    .loop = p_.blocks[p_.block_of(index)].loop,
                    .counter = counter,
                    .value = value,
                    .min_outstanding = queue.least,
                    .max_outstanding = queue.most,
                    .waits_for = {}};
    if (counter == WaitCounter::vmcnt) std::tie(point.min_bytes, point.max_bytes) = bytes(queue);
    if (!point.idle()) {
      const std::size_t first = queue.unordered() ? 0 : static_cast<std::size_t>(value);
      std::uint32_t last = 0; // an unordered queue has one set in all of its places
      for (std::size_t place = first; place < queue.places.size(); ++place)
        if (const QueuePlace& at = queue.places[place]; at.operations != 0) {
          const std::vector<std::uint32_t>& operations = sets_.of(at.operations);
          if (at.operations != last) point.waits_for.insert(point.waits_for.end(), operations.begin(), operations.end());
          last = at.operations;
          const int distance = state.distance(at);
          point.shortest_distance = point.shortest_distance < 0 ? distance : std::min(point.shortest_distance, distance);
        }
      std::sort(point.waits_for.begin(), point.waits_for.end());
      point.waits_for.erase(std::unique(point.waits_for.begin(), point.waits_for.end()), point.waits_for.end());
    }
    result_.points.push_back(std::move(point));
  }

  std::uint32_t load_bytes(std::uint32_t instruction) const { return uses_[instruction].load_bytes * lanes; }

  // The least and the most bytes of loads in a queue whose places may hold one of several operations.
  std::pair<std::uint32_t, std::uint32_t> bytes(const CounterQueue& queue) const {
    std::uint32_t least = 0, most = 0;
    for (std::size_t place = 0; place < queue.places.size(); ++place) {
      std::uint32_t low = std::numeric_limits<std::uint32_t>::max(), high = 0;
      for (const std::uint32_t instruction : sets_.of(queue.places[place].operations)) {
        low = std::min(low, load_bytes(instruction));
        high = std::max(high, load_bytes(instruction));
      }
      if (place < static_cast<std::size_t>(queue.least) && queue.places[place].operations != 0) least += low;
      most += high;
    }
    return {least, most};
  }

  // One trip through a loop's blocks from a state at its header; the joined states of its latches come back. Inner
  // loops are run to a fixpoint, as in solve().
  template <class Look> std::optional<WaitState> trip(const Loop& loop, const WaitState& start, Look look) const {
    std::vector<std::optional<WaitState>> in(loop.blocks.size());
    const auto place = [&](std::size_t block) {
      const auto at = std::lower_bound(loop.blocks.begin(), loop.blocks.end(), block);
      return at != loop.blocks.end() && *at == block ? static_cast<std::size_t>(at - loop.blocks.begin()) : nothing;
    };
    std::optional<WaitState> back;
    in[place(loop.header)] = start;
    WorkList work(p_);
    work.add(loop.header);
    while (!work.empty() && !exhausted()) {
      const std::size_t b = work.take();
      const WaitState out = walk(b, *in[place(b)], /*timed=*/false);
      work_ += size_of(out) * static_cast<std::int64_t>(1 + p_.blocks[b].successors.size());
      for (const std::size_t to : p_.blocks[b].successors) {
        if (to == loop.header) {
          if (back) back->join(out, sets_);
          else back = out;
          continue;
        }
        const std::size_t at = place(to);
        if (at == nothing) continue;
        const bool is_new = !in[at];
        if (is_new) in[at] = out;
        if (is_new || in[at]->join(out, sets_)) work.add(to);
      }
    }
    for (std::size_t at = 0; at < in.size(); ++at)
      if (in[at]) walk(loop.blocks[at], *in[at], look, /*timed=*/false);
    return back;
  }

  LoopFlight flight(std::size_t index) const {
    const Loop& loop = p_.loops[index];
    LoopFlight result{.loop = index};
    for (const std::size_t i : p_.instructions_of(loop.blocks)) {
      result.loads += uses_[i].load_bytes > 0;
      result.bytes_a_trip += uses_[i].load_bytes * lanes;
    }
    if (result.loads == 0 || !in_[loop.header] || exhausted()) return result;
    WaitState state = *in_[loop.header];
    state.forget_distances();
    for (int round = 0; round < max_rounds && !exhausted(); ++round) {
      const auto next = trip(loop, state, [](std::size_t, const WaitState&) {});
      if (!next || *next == state) break;
      state = *next;
    }
    result.min_bytes = std::numeric_limits<std::uint32_t>::max();
    const auto back = trip(loop, state, [&](std::size_t i, const WaitState& at) {
      const CounterQueue& queue = at.queues[0];
      const auto [least, most] = bytes(queue);
      result.min_bytes = std::min(result.min_bytes, least);
      result.max_bytes = std::max(result.max_bytes, most);
      if (const auto counts = wait_counts(p_.instructions[i]); counts && counts->vmcnt == 0 && queue.most > 0) ++result.drains;
    });
    if (back) result.max_back_bytes = bytes(back->queues[0]).second;
    return result;
  }

  const Program& p_;
  std::vector<Action> actions_;              // by address
  std::vector<std::size_t> first_action_;    // by block, and one behind the last
  std::vector<CounterUse> uses_;             // by instruction
  std::vector<std::optional<WaitState>> in_; // by block, the joined states of its predecessors
  WaitAnalysis result_;
  mutable OperationSets sets_;
  mutable std::int64_t work_ = 0;
};

} // namespace

std::string_view to_string(WaitCounter counter) {
  constexpr std::array<std::string_view, wait_counter_count> names{"vmcnt", "lgkmcnt", "expcnt"};
  return names[static_cast<std::size_t>(counter)];
}

WaitAnalysis analyse_waits(const Program& program) { return Analyser(program).run(); }

std::vector<OutstandingCounts> outstanding_counts(const Program& program) { return Analyser(program).counts(); }

} // namespace kiln::isa
