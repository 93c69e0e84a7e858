// Bytes under way, until each comes.
#include "isa_checks/timing/queues.h"
#include <algorithm>

namespace kiln::timing {

void InFlight::go_on(double time) {
  counted_ = std::max(bytes_, counted_ - std::max(0.0, time - since_) * rate_);
  since_ = std::max(since_, time);
}

void InFlight::add(double until, double bytes) {
  arrivals_.emplace(until, bytes);
  bytes_ += bytes;
  counted_ += bytes;
}

double InFlight::at(double time) {
  for (; !arrivals_.empty() && arrivals_.top().first <= time; arrivals_.pop()) {
    go_on(arrivals_.top().first);
    bytes_ -= arrivals_.top().second;
  }
  go_on(time);
  return counted_;
}

} // namespace kiln::timing
