// Plan: the analysis of a spec, each graph walked once.
#include "gen/plan/plan.h"
#include "gen/plan/validate.h"
#include "gen/plan/view.h"

namespace kiln {
namespace {

// `graph` is of a spec with lines.
AnalysedSpec analyse(const SpecGraph& graph, const Target& target) {
  require_sound_names(graph);
  if (graph.has_sort) {
    SplitSort split = split_sort(graph);
    AnalysedSpec result = analyse(SpecGraph(split.rest), target);
    result.spec = graph.spec;
    result.body.names.insert({split.parts.order, split.parts.offsets});
    result.sort = std::move(split.parts);
    return result;
  }
  if (graph.has_attention) {
    require_native_types(graph, target);
    SplitAttention split = split_attention(graph);
    const SpecGraph epilogue = SpecGraph::as_spelled(std::move(split.epilogue));
    Shape space = require_sound_shapes(epilogue, true);
    AnalysedSpec result{
        .spec = graph.spec, .products = {}, .body = make_body(epilogue, std::move(space)), .attention = std::move(split.parts)};
    result.body.scalars = graph.scalars;
    result.body.dynamic_dims = graph.dynamic_dims;
    return result;
  }
  if (!graph.has_products) {
    Shape space = require_sound_shapes(graph);
    require_native_types(graph, target);
    const SpecGraph lowered = SpecGraph::as_spelled(lower_partners(graph));
    return {.spec = graph.spec, .products = {}, .body = make_body(lowered, std::move(space))};
  }
  require_native_types(graph, target);
  SplitSpec split = split_products(graph);
  const SpecGraph epilogue = SpecGraph::as_spelled(std::move(split.epilogue));
  Shape space = require_sound_shapes(epilogue);
  return {.spec = graph.spec, .products = std::move(split.products), .body = make_body(epilogue, std::move(space))};
}

} // namespace

AnalysedSpec analyse(const KernelSpec& spec, const Target& target) { return analyse(SpecGraph::as_spelled(with_lines(spec)), target); }

} // namespace kiln
