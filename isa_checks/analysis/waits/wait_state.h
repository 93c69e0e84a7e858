// WaitState: the queue of outstanding operations of each counter at one point of a program. Internal to the wait
// analysis.
#pragma once
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/counter_use.h"
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace kiln::isa {

// Sets of operations, each kept once and named by a number: states are joined a thousand times as often as a set is new.
class OperationSets {
public:
  std::uint32_t single(std::uint32_t instruction);
  // The union; `a` where that would be too large.
  std::uint32_t both(std::uint32_t a, std::uint32_t b);
  const std::vector<std::uint32_t>& of(std::uint32_t set) const { return sets_[set]; } // instructions, ascending

private:
  std::uint32_t number(std::vector<std::uint32_t> set);
  std::vector<std::vector<std::uint32_t>> sets_{{}}; // 0: the empty one
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> singles_; // by instruction
  std::unordered_map<std::uint64_t, std::uint32_t> unions_;  // by the two numbers
};

// One place of a queue: the operations that may stand there, and when the youngest of them was issued. Its distance is `clock`
// of the state minus `born`.
struct QueuePlace {
  std::uint32_t operations = 0; // of OperationSets
  std::int32_t born = 0;
  bool operator==(const QueuePlace&) const = default;
};

// Places are counted from the youngest operation. Paths that met may disagree about which operation stands at a place,
// and about the length of the queue.
struct CounterQueue {
  int least = 0, most = 0; // operations outstanding
  // What may be among them: operations that complete in any order; in order with their like; GDS, likewise.
  bool any_order = false, plain = false, gds = false;
  std::vector<QueuePlace> places; // `most` of them
  bool unordered() const { return any_order || (plain && gds); }
  bool operator==(const CounterQueue&) const = default;
};

class WaitState {
public:
  std::array<CounterQueue, wait_counter_count> queues; // by WaitCounter
  std::int32_t clock = 0; // instructions executed since the block began; stands still where distances do not matter
  bool operator==(const WaitState&) const = default;

  void issue(std::uint32_t instruction, const CounterUse& use, OperationSets& sets);
  void wait(WaitCounter counter, int value, OperationSets& sets);
  void forget_distances();
  void end_block();                                       // makes the clock 0 again, keeping distances
  bool join(const WaitState& other, OperationSets& sets); // takes in another path, whose clock is 0 too; true when this changed
  int distance(const QueuePlace& place) const { return clock - place.born - 1; }
};

} // namespace kiln::isa
