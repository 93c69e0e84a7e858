// Slices of time that are taken, and bytes under way in each.
#include "isa_checks/timing/queues.h"
#include <algorithm>

namespace kiln::timing {

// The first slice from `at` on that is not full; shortens the way there for the next search.
std::size_t SharedQueue::with_room(std::size_t at) {
  std::size_t found = at;
  while (found < taken_.size() && after_[found] != found) found = after_[found];
  while (at < taken_.size() && at != found) {
    const std::size_t next = after_[at];
    after_[at] = static_cast<std::uint32_t>(found);
    at = next;
  }
  if (found >= taken_.size()) {
    const std::size_t first = taken_.size();
    taken_.resize(found + 1);
    after_.resize(found + 1);
    for (std::size_t i = first; i <= found; ++i) after_[i] = static_cast<std::uint32_t>(i);
  }
  return found;
}

double SharedQueue::serve(double now, double cycles) {
  double done = now;
  for (auto at = static_cast<std::size_t>(now / slice); cycles > 0; ++at) {
    at = with_room(at);
    const double begin = static_cast<double>(at) * slice, end = begin + slice, taken = static_cast<double>(taken_[at]);
    const double here = std::min({cycles, slice - taken, end - std::max(now, begin)});
    done = std::min(end, std::max(now, begin + taken) + here);
    taken_[at] += static_cast<float>(here);
    if (slice - static_cast<double>(taken_[at]) < 1e-3) after_[at] = static_cast<std::uint32_t>(at + 1);
    cycles -= here;
  }
  last_ = std::max(last_, done);
  return done;
}

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
