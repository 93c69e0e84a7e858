// The transfer functions of the wait analysis.
#include "isa_checks/wait_state.h"
#include <algorithm>

namespace kiln::isa {
namespace {

constexpr std::array<int, 2> capacity{63, 15};
// Distances beyond this are all the same to a reader, and a bound makes the analysis of loops end.
constexpr std::int32_t longest_distance = 1 << 16;
// Compilers' code has a few operations for one place; the bound keeps hostile code from taking memory without end.
constexpr std::size_t most_alternatives = 256;

bool before(const Outstanding& a, const Outstanding& b) { return a.instruction < b.instruction; }

// Adds `from` to the sorted list `to`; of one instruction the later birth (the shorter distance) stays.
bool merge(std::vector<Outstanding>& to, const std::vector<Outstanding>& from) {
  bool changed = false;
  for (const Outstanding& operation : from) {
    const auto at = std::lower_bound(to.begin(), to.end(), operation, before);
    if (at == to.end() || at->instruction != operation.instruction) {
      if (to.size() >= most_alternatives)
        continue;
      to.insert(at, operation);
      changed = true;
    } else if (operation.born > at->born) {
      at->born = operation.born;
      changed = true;
    }
  }
  return changed;
}

void issue_on(CounterQueue& queue, std::uint32_t instruction, bool unordered, std::int32_t clock, int most) {
  queue.places.insert(queue.places.begin(), {Outstanding{instruction, clock}});
  queue.least = std::min(queue.least + 1, most); // the hardware stalls instead of counting further
  queue.most = std::min(queue.most + 1, most);
  queue.places.resize(static_cast<std::size_t>(queue.most));
  queue.unordered = queue.unordered || unordered;
}

} // namespace

CounterUse counter_use(const Instruction& instruction) {
  CounterUse use;
  const std::string_view m = instruction.mnemonic;
  switch (classify(instruction)) {
  case InstructionClass::vmem_load:
  case InstructionClass::vmem_store:
  case InstructionClass::vmem_atomic: {
    const auto op = memory_op(instruction);
    use.vm = true;
    use.lgkm = use.unordered = op->space == MemorySpace::flat; // AMDGPUUsage: flat may report out of order in both
    if (op->direction == MemoryDirection::load && op->space != MemorySpace::scratch)
      use.load_bytes = static_cast<std::uint16_t>(op->bytes);
    break;
  }
  case InstructionClass::smem:
    use.lgkm = use.unordered = true;
    break;
  case InstructionClass::lds:
    use.lgkm = true;
    break;
  default:
    // A write-back is waited for; invalidations are not counted (LLVM, SIInsertWaitcnts.cpp).
    use.vm = m.starts_with("buffer_wb");
    use.lgkm = use.unordered = m.starts_with("s_sendmsg");
  }
  return use;
}

void WaitState::issue(std::uint32_t instruction, const CounterUse& use) {
  if (use.vm)
    issue_on(queues[0], instruction, use.unordered, clock, capacity[0]);
  if (use.lgkm)
    issue_on(queues[1], instruction, use.unordered, clock, capacity[1]);
}

void WaitState::wait(WaitCounter counter, int value) {
  CounterQueue& queue = queues[static_cast<std::size_t>(counter)];
  if (queue.most <= value)
    return;
  if (queue.unordered && value > 0) { // any of them may be what is left
    std::vector<Outstanding> any;
    for (const auto& place : queue.places)
      merge(any, place);
    std::fill(queue.places.begin(), queue.places.end(), any);
  }
  queue.most = value;
  queue.least = std::min(queue.least, value);
  queue.places.resize(static_cast<std::size_t>(value));
  queue.unordered = queue.unordered && value > 0;
}

void WaitState::end_block() {
  for (CounterQueue& queue : queues)
    for (auto& place : queue.places)
      for (Outstanding& operation : place)
        operation.born = std::max(operation.born - clock, -longest_distance);
  clock = 0;
}

bool WaitState::join(const WaitState& other) {
  bool changed = false;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    CounterQueue& mine = queues[i];
    const CounterQueue& theirs = other.queues[i];
    if (theirs.places.size() > mine.places.size())
      mine.places.resize(theirs.places.size());
    for (std::size_t p = 0; p < theirs.places.size(); ++p)
      changed = merge(mine.places[p], theirs.places[p]) || changed;
    changed = changed || theirs.least < mine.least || theirs.most > mine.most || (theirs.unordered && !mine.unordered);
    mine.least = std::min(mine.least, theirs.least);
    mine.most = std::max(mine.most, theirs.most);
    mine.unordered = mine.unordered || theirs.unordered;
  }
  return changed;
}

} // namespace kiln::isa
