// WaitState: the queue of outstanding operations of each counter at one point of a program. Internal to the wait
// analysis.
#pragma once
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/counter_use.h"
#include <array>
#include <cstdint>
#include <vector>

namespace kiln::isa {

// One place of a queue: the operations that may stand there, and when the youngest of them was issued. Its distance is `clock`
// of the state minus `born`.
struct QueuePlace {
  std::vector<std::uint32_t> instructions; // ascending
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

  void issue(std::uint32_t instruction, const CounterUse& use);
  void wait(WaitCounter counter, int value);
  void forget_distances();
  void end_block();                  // makes the clock 0 again, keeping distances
  bool join(const WaitState& other); // takes in another path, whose clock is 0 too; true when this changed
  int distance(const QueuePlace& place) const { return clock - place.born - 1; }
};

} // namespace kiln::isa
