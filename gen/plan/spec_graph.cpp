// SpecGraph: one walk over a spec.
#include "gen/plan/spec_graph.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <utility>

namespace kiln {

SpecGraph::SpecGraph(const KernelSpec& given) : SpecGraph(merge_equal_nodes(given), Merged{}) {}

SpecGraph::SpecGraph(KernelSpec merged, Merged) : spec(std::move(merged)), nodes(nodes_in_order(spec)) {
  for (const Expr& node : nodes) {
    if (node.op() == Op::input) inputs.push_back(node);
    if (node.op() == Op::scalar) scalars.push_back(node);
    if (node->group && std::ranges::find(group_sizes, node->group) == group_sizes.end()) group_sizes.push_back(node->group);
    has_products |= info(node.op()).kind == OpKind::product;
    has_reductions |= is_reduction(node.op());
  }
  for (const Expr& input : inputs)
    for (const Dim& dim : input.shape())
      if (dim.is_dynamic() && std::ranges::find(dynamic_dims, dim) == dynamic_dims.end()) dynamic_dims.push_back(dim);
}

} // namespace kiln
