// Cost: a closed form for the time of a launch, by which schedules are ordered before anything is compiled. docs/timing.md derives it.
#pragma once
#include "gen/plan/plan.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// What a launch of a schedule demands of a chip. Bytes are of a workgroup, the mean over all.
struct Demand {
  double workgroups = 1;
  double waves = 1;         // of a workgroup
  double idle_waves = 0;    // that it has beside those, and that end at once
  double per_cu = 1;        // workgroups that a CU has room for at once
  double far_bytes = 0;     // that come from HBM
  double fill_bytes = 0;    // that take the path from L2 to the CU: those, what other workgroups have loaded too, and what L1 lost
  double loaded = 0;        // bytes into registers
  double written = 0;       // bytes
  double in_flight = 0;     // loaded bytes that are in flight at a time
  double trips = 0;         // latencies that follow each other, of the slowest wave; 0: loaded / in_flight
  bool reloads = false;     // what has been used, at once: a trip takes its latency or its work, not both
  double busiest = 1;       // what the workgroup with most work has, over the mean
  double busiest_xcd = 1;   // what the XCD with most work has, over the mean
  double instructions = 0;  // of a wave, in issue slots of four cycles; between the first data and the last
  double lead = 0;          // the same, before the first load
  double tail = 0;          // the same, after the last data
  double matrix_cycles = 0; // of a wave
  double chain_ns = 0;      // of waits that follow each other and overlap with nothing: reductions, sums across waves
  double exit_ns = 0;       // after the last sums: what workgroups exchange
};

struct Cost {
  double start = 0, stream = 0, exit = 0; // nanoseconds: until the first data; while data come; after
  std::string_view bound_by = {};         // what decides the stream
  double total() const { return start + stream + exit; }
};
Cost cost_of(const Demand& work, const machine::Chip& chip);

// The run-time sizes that a plan is judged at, by name: few rows to many, within the bounds that the spec gives. One entry, empty, when
// there is no run-time size.
using RunTimeSizes = std::map<std::string, std::int64_t>;
std::vector<RunTimeSizes> nominal_sizes(const Plan& plan);

// Product of the outer dimensions of the iteration space.
double outer_size(const Body& body, const RunTimeSizes& sizes);

} // namespace kiln
