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
  least_vm = std::min(least_vm, other.least_vm);
  most_vm = std::max(most_vm, other.most_vm);
  least_lgkm = std::min(least_lgkm, other.least_lgkm);
  most_lgkm = std::max(most_lgkm, other.most_lgkm);
}

void InstCounters::note_outstanding(int vm, int lgkm) {
  const auto vm8 = static_cast<std::uint8_t>(vm), lgkm8 = static_cast<std::uint8_t>(lgkm);
  least_vm = std::min(least_vm, vm8);
  most_vm = std::max(most_vm, vm8);
  least_lgkm = std::min(least_lgkm, lgkm8);
  most_lgkm = std::max(most_lgkm, lgkm8);
}

} // namespace kiln::exec
