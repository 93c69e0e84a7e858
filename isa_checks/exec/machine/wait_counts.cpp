// Bookkeeping of memory operations in flight.
#include "isa_checks/exec/machine/wait_counts.h"
#include <algorithm>

namespace kiln::exec {

void InFlight::mark(const Event& event, int change) {
  for (std::size_t i = event.filled.first, end = i + event.filled.count; i < end; ++i)
    filling_[i] = static_cast<std::uint8_t>(filling_[i] + change);
  pending_ += change;
}

void InFlight::issue(const Inst& inst, Effect effect) {
  const Event event{inst.use.write_list[0], inst.address, now_, effect};
  loaded_bytes_ += effect.loaded_bytes;
  constexpr int vector_limit = max_vmcnt, lds_limit = max_lgkmcnt; // the hardware stalls there
  const isa::CounterUse& counts = inst.counts;
  if (counts.vm) outstanding_vm_ = std::min(outstanding_vm_ + 1, vector_limit);
  if (counts.lgkm) outstanding_lgkm_ = std::min(outstanding_lgkm_ + 1, lds_limit);
  if (counts.vm && counts.lgkm) flat_.push_back(event);
  else if (counts.vm) vector_memory_.push_back(event);
  else if (counts.unordered) scalar_.push_back(event);
  else lds_.push_back(event);
  mark(event, 1);
  while (vector_memory_.size() > static_cast<std::size_t>(vector_limit)) {
    retire(vector_memory_.front());
    vector_memory_.pop_front();
  }
  while (lds_.size() > static_cast<std::size_t>(lds_limit)) {
    retire(lds_.front());
    lds_.pop_front();
  }
}

void InFlight::retire(const Event& event) {
  mark(event, -1);
  loaded_bytes_ -= event.effect.loaded_bytes;
  if (event.effect.to_lds) to_lds_done_ = event.time;
}

void InFlight::wait(isa::WaitFields counts) {
  outstanding_vm_ = std::min(outstanding_vm_, counts.vmcnt);
  outstanding_lgkm_ = std::min(outstanding_lgkm_, counts.lgkmcnt);
  const auto vmcnt = static_cast<std::size_t>(counts.vmcnt), lgkmcnt = static_cast<std::size_t>(counts.lgkmcnt);
  while (vector_memory_.size() > vmcnt) {
    retire(vector_memory_.front());
    vector_memory_.pop_front();
  }
  while (lds_.size() > lgkmcnt) {
    retire(lds_.front());
    lds_.pop_front();
  }
  if (lgkmcnt == 0) {
    for (const Event& e : scalar_) retire(e);
    scalar_.clear();
  }
  for (Event& e : flat_) {
    e.vm_done = e.vm_done || vmcnt == 0;
    e.lgkm_done = e.lgkm_done || lgkmcnt == 0;
    if (e.done()) retire(e);
  }
  std::erase_if(flat_, [](const Event& e) { return e.done(); });
}

std::uint32_t InFlight::lds_done_until() const {
  std::uint32_t done = now_;
  if (!lds_.empty()) done = lds_.front().time - 1;
  if (!flat_.empty()) done = std::min(done, flat_.front().time - 1);
  return done;
}

bool InFlight::pending(isa::RegisterRange range) const {
  return std::any_of(filling_.begin() + range.first, filling_.begin() + range.first + range.count, [](int count) { return count != 0; });
}

std::uint64_t InFlight::filler(isa::RegisterRange range) const {
  const auto search = [&](const auto& events) -> std::uint64_t {
    for (const Event& e : events)
      if (e.filled.overlaps(range)) return e.address;
    return 0;
  };
  for (const std::uint64_t found : {search(vector_memory_), search(lds_), search(scalar_), search(flat_)})
    if (found != 0) return found;
  return 0;
}

} // namespace kiln::exec
