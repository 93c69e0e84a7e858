// The transfer functions of the wait analysis.
#include "isa_checks/analysis/waits/wait_state.h"
#include <algorithm>
#include <iterator>

namespace kiln::isa {
namespace {

// Distances beyond this are all the same to a reader, and a bound makes the analysis of loops end.
constexpr std::int32_t longest_distance = 1 << 16;
// Compilers' code has a few operations for one place; the bound keeps hostile code from taking memory without end.
constexpr std::size_t most_alternatives = 256;

// Adds the operations of `from` to `to`, and takes the later birth (the shorter distance).
bool merge(QueuePlace& to, const QueuePlace& from) {
  bool changed = from.born > to.born;
  to.born = std::max(to.born, from.born);
  if (to.instructions == from.instructions ||
      std::includes(to.instructions.begin(), to.instructions.end(), from.instructions.begin(), from.instructions.end()))
    return changed;
  std::vector<std::uint32_t> both;
  std::set_union(to.instructions.begin(), to.instructions.end(), from.instructions.begin(), from.instructions.end(),
                 std::back_inserter(both));
  if (both.size() > most_alternatives) return changed;
  to.instructions = std::move(both);
  return true;
}

void issue_on(CounterQueue& queue, std::uint32_t instruction, const CounterUse& use, std::int32_t clock, int most) {
  queue.least = std::min(queue.least + 1, most); // the hardware stalls instead of counting further
  queue.most = std::min(queue.most + 1, most);
  queue.places.resize(static_cast<std::size_t>(queue.most));
  std::rotate(queue.places.begin(), queue.places.end() - 1, queue.places.end());
  queue.places.front().instructions.assign(1, instruction);
  queue.places.front().born = clock;
  (use.unordered ? queue.any_order : use.gds ? queue.gds : queue.plain) = true;
}

} // namespace

void WaitState::issue(std::uint32_t instruction, const CounterUse& use) {
  const std::array<bool, wait_counter_count> counts{use.vm, use.lgkm, use.exp};
  for (std::size_t i = 0; i < queues.size(); ++i)
    if (counts[i]) issue_on(queues[i], instruction, use, clock, counter_capacity[i]);
}

void WaitState::wait(WaitCounter counter, int value) {
  CounterQueue& queue = queues[static_cast<std::size_t>(counter)];
  if (queue.most <= value) return;
  if (queue.unordered() && value > 0) { // any of them may be what is left
    QueuePlace any = queue.places.front();
    for (const QueuePlace& place : queue.places) merge(any, place);
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

bool WaitState::join(const WaitState& other) {
  bool changed = false;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    CounterQueue& mine = queues[i];
    const CounterQueue& theirs = other.queues[i];
    const std::size_t shared = std::min(mine.places.size(), theirs.places.size());
    for (std::size_t p = 0; p < shared; ++p) changed = merge(mine.places[p], theirs.places[p]) || changed;
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
