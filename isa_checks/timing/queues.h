// Queue, SharedQueue, InFlight: resources of one rate, and what is under way, on the simulation's time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::timing {

// Serves in order of arrival: requests have to come in order of time.
struct Queue {
  double free = 0; // when it has served all so far
  double serve(double now, double cycles) {
    free = (now > free ? now : free) + cycles;
    return free;
  }
};

// Serves requests that need not come in order of time, as those of several CUs do not: one takes the first time from `now` on that no
// other one has taken, by slices. So a CU that is behind does not hold up the others, and no slice serves more than its length.
class SharedQueue {
public:
  double serve(double now, double cycles); // when it is served
  double last() const { return last_; }    // when the last of all requests so far is served

private:
  static constexpr double slice = 32; // cycles
  std::size_t with_room(std::size_t at);

  std::vector<float> taken_;         // cycles of each slice
  std::vector<std::uint32_t> after_; // a slice that is taken: the next one that may have room
  double last_ = 0;
};

// Bytes on their way, by slices of time, whatever order they are requested in.
class InFlight {
public:
  void add(double from, double to, double bytes);
  double at(double time) const;

private:
  static constexpr double slice = 128; // cycles
  std::vector<double> bytes_;
};

} // namespace kiln::timing
