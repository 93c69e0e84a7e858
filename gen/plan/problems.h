// Problems: outputs over unlike iteration spaces, as specs of their own that one kernel computes side by side.
#pragma once
#include "gen/plan/product.h"
#include <optional>
#include <vector>

namespace kiln {

inline constexpr std::size_t max_problems = 8; // of one kernel

struct Problems {
  std::vector<KernelSpec> specs = {};
  std::optional<SplitSpec> split = {}; // of a spec of one problem, if looking for others has split off its products
};

// The problems of a spec whose outputs do not share one iteration space, or have unlike products: outputs over the same one are one
// problem, with products that one kernel can have. What several need, each computes for itself, as kernels of their own would. In the
// order of their first outputs. No specs for a spec of one problem, and for one with attention or a sort, which have kernels of their own.
// Throws UserError for an output that has no iteration space by itself, for one that overwrites what another problem reads, and when there
// are too many.
Problems problems_of(const SpecGraph& graph);

} // namespace kiln
