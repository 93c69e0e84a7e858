// Cost: a closed form for the time of a launch, by which schedules are ordered before anything is compiled. docs/timing_model.md derives
// it.
#pragma once
#include "gen/plan/plan.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// What a launch of a schedule demands of a chip: what decides between schedules (docs/timing.md says what was left out, for it decided
// nothing). Bytes are of a workgroup, the mean over all.
struct Demand {
  double workgroups = 1;
  double waves = 1;          // of a workgroup
  double per_cu = 1;         // workgroups that a CU has room for at once
  double far_bytes = 0;      // that come from HBM
  double fill_bytes = 0;     // that take the path from L2 to the CU: those, what other workgroups have loaded too, and what L1 lost
  double near_lost = 0;      // of those that are not far, the share that takes as long as far ones, for L2 lost it
  double register_bytes = 0; // of L1's path to registers: 64 for each half of a line that a load touches
  double loaded = 0;         // bytes into registers
  double written = 0;        // bytes
  double in_flight = 0;      // loaded bytes that are in flight at a time
  double stage_share = 0;    // of those, what a stage of a ring holds; 0: there is no ring
  double instructions = 0;   // of a wave, in issue slots of four cycles
  double dependent = 0;      // of those slots, how many more a wave waits for the instruction before, while others of its SIMD issue
  double matrix_cycles = 0;  // of a wave
  double chain_ns = 0;       // of waits that follow each other and overlap with nothing: reductions, meetings of segments
  double exit_ns = 0;        // after the last sums: what workgroups exchange
};

struct Cost {
  double start = 0, stream = 0, exit = 0; // nanoseconds: until the first data; while data come; after
  std::string_view bound_by = {};         // what decides the stream
  double cu_share = 0;                    // how long its CUs take for the path from L2, L1 or instructions, of what that takes
  double total() const { return start + stream + exit; }
};
Cost cost_of(const Demand& work, const machine::Chip& chip);

// The run-time sizes that a plan is judged at, by name: of products the bound of m, for an engine that wants a schedule for few rows states
// that bound; else few rows to many, within the bounds that the spec gives. One entry, empty, when there is no run-time size.
using RunTimeSizes = std::map<std::string, std::int64_t>;
std::vector<RunTimeSizes> nominal_sizes(const Plan& plan);

// Product of the outer dimensions of the iteration space.
double outer_size(const Body& body, const RunTimeSizes& sizes);

} // namespace kiln
