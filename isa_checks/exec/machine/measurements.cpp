// Counting, and adding up what host threads counted.
#include "isa_checks/exec/machine/measurements.h"
#include <algorithm>

namespace kiln::exec {

void InstCounters::add(const InstCounters& other) {
  executed += other.executed;
  lanes += other.lanes;
  bytes += other.bytes;
  lines64 += other.lines64;
  lines128 += other.lines128;
  lds_cycles += other.lds_cycles;
  lds_ideal += other.lds_ideal;
  in_flight += other.in_flight;
  in_flight_peak = std::max(in_flight_peak, other.in_flight_peak);
  min_vm = std::min(min_vm, other.min_vm);
  max_vm = std::max(max_vm, other.max_vm);
  min_lgkm = std::min(min_lgkm, other.min_lgkm);
  max_lgkm = std::max(max_lgkm, other.max_lgkm);
}

void InstCounters::note_outstanding(int vm, int lgkm) {
  const auto vm8 = static_cast<std::uint8_t>(vm), lgkm8 = static_cast<std::uint8_t>(lgkm);
  min_vm = std::min(min_vm, vm8);
  max_vm = std::max(max_vm, vm8);
  min_lgkm = std::min(min_lgkm, lgkm8);
  max_lgkm = std::max(max_lgkm, lgkm8);
}

} // namespace kiln::exec
