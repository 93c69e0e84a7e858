// Passes: what each pass over the row reads from memory, takes from an earlier pass, and keeps for a later one.
#pragma once
#include "gen/plan/body.h"
#include <vector>

namespace kiln {

// All numbers are indices into Body::values; each list is in order of first need.
struct Pass {
  std::vector<int> roots = {};   // what it is for: operands of row reductions, outputs (their values), by level
  std::vector<int> streams = {}; // inputs, and views of them, that it reads from memory
  std::vector<int> takes = {};   // values that an earlier pass kept
  std::vector<int> keeps = {};   // values that it keeps for later passes
  std::vector<int> stores = {};  // outputs of elements and groups that it stores: indices into Body::outputs
};

enum class BetweenPasses : std::uint8_t {
  keep,   // what an earlier pass had is kept, unless it is cheap to compute again from what is kept anyway
  reload, // nothing is kept: every pass reads its inputs again
};
enum class StoresIn : std::uint8_t {
  own_pass,  // each output as soon as it can be had
  last_pass, // all outputs when all reductions are complete
};
std::vector<Pass> split_passes(const Body& body, BetweenPasses between = BetweenPasses::keep, StoresIn stores = StoresIn::own_pass);

// Registers that one lane needs for one chunk of `vec` elements of the value, as memory holds it.
int chunk_registers(const Value& value, int vec);

} // namespace kiln
