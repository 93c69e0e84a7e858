// Queue, InFlight: resources of one rate, and what is under way, on the simulation's time.
#pragma once
#include <functional>
#include <queue>
#include <utility>
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

// Bytes on their way. Times have to be asked for nearly in order: what has come by then is forgotten.
class InFlight {
public:
  void add(double until, double bytes);
  double at(double time);

private:
  using Arrival = std::pair<double, double>; // when, and bytes
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  double bytes_ = 0;
};

} // namespace kiln::timing
