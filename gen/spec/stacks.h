// Stacks: tensors whose second dimension a kernel takes apart, or puts together, brought down to one tensor for each of its indices.
#pragma once
#include "gen/spec/graph.h"
#include <cstdint>
#include <map>
#include <string>

namespace kiln {

// The place of a tensor that is one index of another one's second dimension, or the whole of one.
struct Slice {
  std::string memory = {}; // the tensor of the spec; empty: it is one itself
  std::int64_t first = 0;  // elements from its beginning
  std::int64_t pitch = 0;  // elements between the indices of its first dimension; 0: those of its own rows, or its run-time stride
};

struct LoweredStacks {
  KernelSpec spec;                     // without unstack and stack
  std::map<std::string, Slice> slices; // inputs and outputs of `spec` that the given spec does not have
};

bool has_stacks(const SpecGraph& graph);
// unstack(x, i) as an input of its own, an output that is a stack as one for each of its values, and a scatter of a stack as several.
// Throws UserError for a stack that stands elsewhere.
LoweredStacks lower_stacks(const SpecGraph& graph);

} // namespace kiln
