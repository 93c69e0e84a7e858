// The transfer functions of the wait analysis.
#include "isa_checks/analysis/waits/wait_state.h"
#include <algorithm>
#include <iterator>

namespace kiln::isa {
namespace {

// Distances beyond this are all the same to a reader, and a bound makes the analysis of loops end.
constexpr std::int32_t longest_distance = 1 << 16;
// Compilers' code has a few operations for one place; the bound keeps hostile code from taking memory without end.
constexpr std::size_t max_alternatives = 256;

// Adds the operations of `from` to `to`, and takes the later birth (the shorter distance).
bool merge(QueuePlace& to, const QueuePlace& from, OperationSets& sets) {
  const QueuePlace before = to;
  to.born = std::max(to.born, from.born);
  to.operations = sets.both(to.operations, from.operations);
  return to != before;
}

void issue_on(CounterQueue& queue, std::uint32_t operation, const CounterUse& use, std::int32_t clock, int most) {
  queue.least = std::min(queue.least + 1, most); // the hardware stalls instead of counting further
  queue.most = std::min(queue.most + 1, most);
  queue.places.resize(static_cast<std::size_t>(queue.most));
  std::rotate(queue.places.begin(), queue.places.end() - 1, queue.places.end());
  queue.places.front() = {operation, clock};
  (use.unordered ? queue.any_order : use.gds ? queue.gds : queue.plain) = true;
}

} // namespace

std::uint32_t OperationSets::number(std::vector<std::uint32_t> set) {
  const auto [at, fresh] = numbers_.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
  if (fresh) sets_.push_back(std::move(set));
  return at->second;
}

std::uint32_t OperationSets::single(std::uint32_t instruction) {
  const auto [at, fresh] = singles_.try_emplace(instruction, 0);
  if (fresh) at->second = number({instruction});
  return at->second;
}

std::uint32_t OperationSets::both(std::uint32_t a, std::uint32_t b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  const auto [at, fresh] = unions_.try_emplace(std::uint64_t{a} << 32 | b, a);
  if (!fresh) return at->second;
  std::vector<std::uint32_t> all;
  std::ranges::set_union(sets_[a], sets_[b], std::back_inserter(all));
  const std::uint32_t result = all.size() > max_alternatives ? a : number(std::move(all));
  return at->second = result;
}

void WaitState::issue(std::uint32_t instruction, const CounterUse& use, OperationSets& sets) {
  const std::array<bool, wait_counter_count> counts{use.vm, use.lgkm, use.exp};
  for (std::size_t i = 0; i < queues.size(); ++i)
    if (counts[i]) issue_on(queues[i], sets.single(instruction), use, clock, counter_capacity[i]);
}

void WaitState::wait(WaitCounter counter, int value, OperationSets& sets) {
  CounterQueue& queue = queues[static_cast<std::size_t>(counter)];
  if (queue.most <= value) return;
  if (queue.unordered() && value > 0) { // any of them may be what is left
    QueuePlace any = queue.places.front();
    for (const QueuePlace& place : queue.places) merge(any, place, sets);
    std::fill(queue.places.begin(), queue.places.end(), any);
  }
  queue.most = value;
  queue.least = std::min(queue.least, value);
  queue.places.resize(static_cast<std::size_t>(value));
  if (value == 0) queue.any_order = queue.plain = queue.gds = false;
}

void WaitState::forget_distances() {
  for (CounterQueue& queue : queues)
    for (QueuePlace& place : queue.places) place.born = 0;
}

void WaitState::end_block() {
  for (CounterQueue& queue : queues)
    for (QueuePlace& place : queue.places) place.born = std::max(place.born - clock, -longest_distance);
  clock = 0;
}

bool WaitState::join(const WaitState& other, OperationSets& sets) {
  bool changed = false;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    CounterQueue& mine = queues[i];
    const CounterQueue& theirs = other.queues[i];
    const std::size_t shared = std::min(mine.places.size(), theirs.places.size());
    for (std::size_t p = 0; p < shared; ++p) changed = merge(mine.places[p], theirs.places[p], sets) || changed;
    mine.places.insert(mine.places.end(), theirs.places.begin() + static_cast<std::ptrdiff_t>(shared), theirs.places.end());
    changed = changed || theirs.least < mine.least || theirs.most > mine.most || (theirs.any_order && !mine.any_order) ||
              (theirs.plain && !mine.plain) || (theirs.gds && !mine.gds);
    mine.least = std::min(mine.least, theirs.least);
    mine.most = std::max(mine.most, theirs.most);
    mine.any_order = mine.any_order || theirs.any_order;
    mine.plain = mine.plain || theirs.plain;
    mine.gds = mine.gds || theirs.gds;
  }
  return changed;
}

} // namespace kiln::isa
