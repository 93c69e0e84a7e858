// Output order: outputs that lie in memory in another order of dimensions than that in which the kernel computes them.
#pragma once
#include "gen/spec/graph.h"
#include <set>
#include <string>

namespace kiln {

struct OrderedOutputs {
  KernelSpec spec;             // every output in the order of the kernel's rows
  std::set<std::string> moved; // those whose values `op` moved
};

// Takes `op`, heads_first or transpose, from where it may stand: directly below an output, or below the output's rounding. Throws UserError
// if it stands elsewhere, or if the output is in place of an input or strided.
OrderedOutputs in_order_of_rows(const KernelSpec& spec, Op op);

} // namespace kiln
