// Bytes under way in each slice of time.
#include "isa_checks/timing/queues.h"
#include <cstddef>

namespace kiln::timing {

void InFlight::add(double from, double to, double bytes) {
  const auto first = static_cast<std::size_t>(from / slice), end = static_cast<std::size_t>(to / slice) + 1;
  if (bytes_.size() < end) bytes_.resize(end);
  for (std::size_t i = first; i < end; ++i) bytes_[i] += bytes;
}

double InFlight::at(double time) const {
  const auto i = static_cast<std::size_t>(time / slice);
  return i < bytes_.size() ? bytes_[i] : 0;
}

} // namespace kiln::timing
