// Queue, InFlight: resources of one rate, and what is under way, on the simulation's time.
#pragma once
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
