// Partition: which nodes of a graph are computed inside the kernel of another one.
#pragma once
#include "examples/ggml/operations/operations.h"
#include <string>
#include <vector>

namespace kiln_ggml {

struct NodePlan {
  const ggml_tensor* node = nullptr;
  Kind kind = Kind::view;
  bool absorbed = false; // computed in the kernel of `user`
  const ggml_tensor* user = nullptr;
  bool stored = false; // ... and written by that kernel as well, for users further on
  bool beside = false; // nothing of `user` needs it, the kernels were merged
  // Products whose weights lie one behind the other, in that order: one product of all, into memory that only rows of this graph read.
  std::vector<const ggml_tensor*> row_of_products = {};
  std::string ended = {}; // why this node is the end of its region; empty for absorbed ones
};

struct Partition {
  std::vector<NodePlan> nodes; // in the graph's order
  const NodePlan* find(const ggml_tensor* node) const;
  bool absorbs(const ggml_tensor* node, const ggml_tensor& user) const; // whether the kernel of `user` computes `node`
  std::vector<std::pair<const ggml_tensor*, std::size_t>> places;       // sorted by address
};

// The node that makes what `source`, perhaps a view of it, shows; null if there is none.
const ggml_tensor* behind_views(const ggml_tensor* source);
// A write of rows to one table, and what makes its rows as [cols, heads, tokens]; null if another kernel has to.
const ggml_tensor* maker_of_rows(const ggml_tensor& write);

// `uses`: how often each node is used by the whole graph, of which these nodes may be a part; empty: nothing is fused.
Partition partition(const std::vector<const ggml_tensor*>& nodes, const std::vector<int>& uses);

} // namespace kiln_ggml
