// Plan: the analysis of a spec: validity, what is split off (products, parts, the sort of experts), the body, problems of several, and
// phases.
#include "gen/plan/plan.h"
#include "gen/error.h"
#include "gen/plan/output_order.h"
#include "gen/plan/phases/phases.h"
#include "gen/plan/phases/whole_rows.h"
#include "gen/plan/problems.h"
#include "gen/plan/validate.h"
#include "gen/plan/view.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

// Only scales of groups can be stored transposed: a lane has one of them, and a column of them is as good as a row.
Body with_transposed(Body body, const std::set<std::string>& moved) {
  for (TensorPlan& t : body.tensors) {
    if (!t.output || !moved.contains(t.name)) continue;
    if (t.extent != Extent::group || !t.row_index.empty())
      throw UserError(fmt::format("output '{}'", t.name), fmt::format("it is transposed, and one value a {}", to_string(t.extent)),
                      "transpose what is one a group of columns, [rows, groups]");
    t.transposed = true;
  }
  return body;
}

Body with_slices(Body body, const std::map<std::string, Slice>& slices, const std::set<std::string>& names) {
  for (TensorPlan& t : body.tensors)
    if (const auto slice = slices.find(t.name); slice != slices.end()) t.slice = slice->second;
  body.names.insert(names.begin(), names.end());
  return body;
}

AnalysedSpec analyse(const SpecGraph& graph, const Target& target);

// The tensors of the body follow when families have laid out the problems.
AnalysedSpec without_problems(const SpecGraph& graph) {
  return {.spec = graph.spec,
          .products = {},
          .body = {.kernel = graph.spec.name(),
                   .outputs = graph.spec.outputs(),
                   .inputs = graph.inputs,
                   .scalars = graph.scalars,
                   .dynamic_dims = graph.dynamic_dims,
                   .names = graph.names}};
}

// Phases that have several phases themselves follow each other.
AnalysedSpec analyse_phases(const SpecGraph& graph, const Target& target) {
  AnalysedSpec result = without_problems(graph);
  const Phases phases = split_phases(graph);
  result.between = phases.between;
  for (const Expr& left : phases.between) result.body.names.insert(left->name);
  for (const KernelSpec& spec : {phases.first, phases.second}) {
    AnalysedSpec phase = analyse(SpecGraph::as_spelled(spec), target);
    result.body.names.insert(phase.body.names.begin(), phase.body.names.end());
    std::vector<std::size_t> sizes = std::exchange(phase.phases, {});
    if (sizes.empty()) sizes.push_back(std::max<std::size_t>(1, phase.problems.size()));
    result.phases.insert(result.phases.end(), sizes.begin(), sizes.end());
    result.between.insert(result.between.end(), phase.between.begin(), phase.between.end());
    if (phase.problems.empty()) result.problems.push_back(std::make_shared<Plan>(Plan{std::move(phase)}));
    else result.problems.insert(result.problems.end(), phase.problems.begin(), phase.problems.end());
  }
  for (const auto& problem : result.problems) problem->body.names.insert(result.body.names.begin(), result.body.names.end());
  return result;
}

// A problem that needs a phase of its own makes phases of the whole spec: what is left for it, is left by all.
AnalysedSpec analyse_problems(const SpecGraph& graph, const std::vector<KernelSpec>& problems, const Target& target) {
  AnalysedSpec result = without_problems(graph);
  for (const KernelSpec& problem : problems) {
    SpecGraph own = SpecGraph::as_spelled(problem);
    own.names.insert(graph.names.begin(), graph.names.end()); // slices have names that no problem has
    result.problems.push_back(std::make_shared<Plan>(Plan{analyse(own, target)}));
    if (!result.problems.back()->problems.empty()) return analyse_phases(graph, target);
    result.problems.back()->body.names.insert(graph.names.begin(), graph.names.end());
  }
  return result;
}

// `graph` is of a spec with lines.
AnalysedSpec analyse(const SpecGraph& graph, const Target& target) {
  require_sound_names(graph);
  if (has_inner_products(graph)) return analyse_phases(graph, target);
  Problems problems = problems_of(graph);
  if (!problems.specs.empty()) return analyse_problems(graph, problems.specs, target);
  if (graph.has(OpKind::sort)) {
    SplitSort split = split_sort(graph);
    AnalysedSpec result = analyse(SpecGraph(split.rest), target);
    result.spec = graph.spec;
    result.body.names.insert({split.parts.order, split.parts.offsets});
    result.sort = std::move(split.parts);
    return result;
  }
  if (has_part(graph)) {
    require_native_types(graph, target);
    PartSplit split = split_part(graph);
    const SpecGraph epilogue = SpecGraph::as_spelled(std::move(split.rest));
    Shape space = require_sound_shapes(epilogue, split.one_a_row);
    AnalysedSpec result{.spec = graph.spec, .products = {}, .body = make_body(epilogue, std::move(space)), .part = std::move(split.part)};
    result.body.scalars = graph.scalars;
    result.body.dynamic_dims = graph.dynamic_dims;
    return result;
  }
  if (!graph.has(OpKind::product)) {
    const LoweredStacks stacks = lower_stacks(graph);
    OrderedOutputs ordered = in_order_of_rows(stacks.spec, Op::transpose);
    const SpecGraph rows = SpecGraph::as_spelled(std::move(ordered.spec));
    Shape space = require_sound_shapes(rows);
    require_native_types(rows, target);
    const SpecGraph lowered = SpecGraph::as_spelled(lower_partners(rows));
    Body body = with_transposed(make_body(lowered, std::move(space)), ordered.moved);
    return {.spec = graph.spec, .products = {}, .body = with_slices(std::move(body), stacks.slices, graph.names)};
  }
  require_native_types(graph, target);
  SplitSpec split = problems.split ? std::move(*problems.split) : split_products(graph);
  const SpecGraph epilogue = SpecGraph::as_spelled(std::move(split.epilogue));
  Shape space = require_sound_shapes(epilogue);
  AnalysedSpec result{.spec = graph.spec, .products = std::move(split.products), .body = make_body(epilogue, std::move(space))};
  return reduces_long_rows(result.body, result.products) ? analyse_phases(graph, target) : result;
}

} // namespace

AnalysedSpec analyse(const KernelSpec& spec, const Target& target) { return analyse(SpecGraph::as_spelled(with_lines(spec)), target); }

} // namespace kiln
