// Passes: for a residency, what each pass over the row reads from memory, takes from an earlier pass, and keeps for a later.
#pragma once
#include "gen/plan/plan.h"
#include "templates/rowwise_config.h"
#include <vector>

namespace kiln {

// All numbers are indices into Plan::values; each list is in order of first need.
struct Pass {
  std::vector<int> roots = {};   // what it is for: operands of row reductions, outputs (their values), by level
  std::vector<int> streams = {}; // inputs that it reads from memory
  std::vector<int> takes = {};   // values that an earlier pass kept
  std::vector<int> keeps = {};   // values that it keeps for later passes
};

// A value that an earlier pass had is kept unless it is cheap to compute again from what is kept anyway. With
// Residency::reload nothing is kept, and passes read their inputs again.
std::vector<Pass> split_passes(const Plan& plan, Residency residency);

// Registers that one lane needs for one chunk of `vec` elements of the value, as memory holds it.
int chunk_registers(const Value& value, int vec);

} // namespace kiln
