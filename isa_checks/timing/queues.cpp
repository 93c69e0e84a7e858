// Bytes under way, until each comes.
#include "isa_checks/timing/queues.h"

namespace kiln::timing {

void InFlight::add(double until, double bytes) {
  arrivals_.emplace(until, bytes);
  bytes_ += bytes;
}

double InFlight::at(double time) {
  for (; !arrivals_.empty() && arrivals_.top().first <= time; arrivals_.pop()) bytes_ -= arrivals_.top().second;
  return bytes_;
}

} // namespace kiln::timing
