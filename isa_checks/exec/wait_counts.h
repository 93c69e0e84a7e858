// InFlight: the memory operations of one wave that nothing has waited for, counted as vmcnt and lgkmcnt count them.
#pragma once
#include "isa_checks/exec/inst.h"
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace kiln::exec {

class InFlight {
public:
  enum Counter : std::uint8_t { vector_memory, lds, scalar_memory, flat };

  // An operation that fills `vector` and `scalar` registers (either may be empty), issued by the instruction at `address`.
  void issue(Counter counter, Range vector, Range scalar, std::uint64_t address);

  // s_waitcnt. Vector memory and LDS each return in order, so all but the newest `count` have arrived. Scalar loads return
  // in any order, and not in order with LDS: they have surely arrived only at 0.
  void wait(std::uint32_t vmcnt, std::uint32_t lgkmcnt);

  bool any() const { return pending_ != 0; }
  bool vector_pending(Range range) const;
  bool scalar_pending(Range range) const;
  // The instruction that fills the first pending register of a range, for messages.
  std::uint64_t filler(Range vector, Range scalar) const;

private:
  struct Event {
    Range vector, scalar;
    std::uint64_t address;
  };
  void retire(const Event& event);
  void mark(const Event& event, int change);

  std::deque<Event> vector_memory_, lds_;
  std::vector<Event> scalar_, flat_;
  std::array<std::uint8_t, 512> vector_count_{};
  std::array<std::uint8_t, 128> scalar_count_{};
  int pending_ = 0;
};

} // namespace kiln::exec
