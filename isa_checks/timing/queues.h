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

// Bytes on their way, of which latency grows. They get fewer no faster than at their own rate, even if data come faster that were requested
// while there was little: so nobody gets data earlier by a later request. Times have to be asked for nearly in order.
class InFlight {
public:
  explicit InFlight(double rate) : rate_(rate) {} // bytes per cycle
  void add(double until, double bytes);
  double at(double time);

private:
  void go_on(double time);

  using Arrival = std::pair<double, double>; // when, and bytes
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  double rate_, since_ = 0, bytes_ = 0, counted_ = 0; // on their way, and as they are counted, at cycle since_
};

} // namespace kiln::timing
