// Sort of pairs by expert: split off a spec, whose rest computes the experts, or which has nothing else.
#pragma once
#include "gen/spec/graph.h"
#include <string>

namespace kiln {

struct SortParts {
  std::string experts; // an input, or an output of the rest: i32 [tokens, top]
  Dim tokens;
  std::int64_t top = 0, count = 0; // experts of a token, and of all
  std::string order, offsets;      // outputs
  bool alone = false;              // nothing is computed beside it
};

struct SplitSort {
  KernelSpec rest; // the spec without the outputs of the sort; of a sort alone a copy of its input, as `order`
  SortParts parts;
};

// Throws UserError when the spec sorts twice, lacks one of the two outputs, or computes with them.
SplitSort split_sort(const SpecGraph& graph);

} // namespace kiln
