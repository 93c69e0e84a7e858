// InFlight: the memory operations of one wave that nothing has waited for, counted as vmcnt and lgkmcnt count them.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace kiln::exec {

class InFlight {
public:
  // What an operation does beyond its registers.
  struct Effect {
    std::uint32_t loaded_bytes = 0; // of device memory, over all lanes
    bool to_lds = false;            // a direct-to-LDS load
  };

  // The operation of an instruction, which fills the registers that it writes.
  void issue(const Inst& inst, Effect effect);
  void issue(const Inst& inst) { issue(inst, Effect{}); }

  // s_waitcnt. Vector memory and LDS each return in order, so all but the newest `count` have arrived. Scalar loads return
  // in any order, and not in order with LDS: they have surely arrived only at 0. Flat operations count in both, and have
  // arrived when each has been waited for down to 0.
  void wait(isa::WaitFields counts);

  bool any() const { return pending_ != 0; }
  bool pending(isa::RegisterRange range) const;
  // The instruction that fills the first pending register of a range, for messages.
  std::uint64_t filler(isa::RegisterRange range) const;

  std::uint64_t loaded_bytes() const { return loaded_bytes_; } // of all loads in flight
  // Operations that nothing has waited for: the most that the counters may read. Completing by itself is not modelled.
  int outstanding_vm() const { return outstanding_vm_; }
  int outstanding_lgkm() const { return outstanding_lgkm_; }

  // Time is the number of instructions that the wave has executed; the caller sets it before each.
  void set_time(std::uint32_t now) { now_ = now; }
  std::uint32_t time() const { return now_; }
  // Every LDS operation that was issued until this time has been waited for; and every direct-to-LDS load.
  std::uint32_t lds_done_until() const;
  std::uint32_t to_lds_done_until() const { return to_lds_done_; }

private:
  struct Event {
    isa::RegisterRange filled;
    std::uint64_t address;
    std::uint32_t time;
    Effect effect;
    bool vm_done = false, lgkm_done = false; // of flat operations, which count in both
    bool done() const { return vm_done && lgkm_done; }
  };
  void retire(const Event& event);
  void mark(const Event& event, int change);

  std::deque<Event> vector_memory_, lds_;
  std::vector<Event> scalar_, flat_;
  std::array<std::uint8_t, isa::reg::count> filling_{}; // operations that fill each register
  std::uint64_t loaded_bytes_ = 0;
  std::uint32_t now_ = 0, to_lds_done_ = 0; // the latter: when the latest direct-to-LDS load that has arrived was issued
  int pending_ = 0;
  int outstanding_vm_ = 0, outstanding_lgkm_ = 0;
};

} // namespace kiln::exec
