// Problems: which outputs belong together, and what two problems of one kernel must not do to each other.
#include "gen/plan/problems.h"
#include "gen/error.h"
#include "gen/plan/part.h"
#include "gen/plan/product.h"
#include "gen/plan/validate.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

using Numbers = std::vector<std::size_t>; // of outputs, ascending

KernelSpec with_outputs(const KernelSpec& spec, const Numbers& numbers) {
  KernelSpec result(spec.name());
  for (const std::size_t number : numbers) {
    const Output& output = spec.outputs()[number];
    result.output(output.name, output.dtype, output.value, {.in_place_of = output.in_place_of, .layout = output.layout});
  }
  return result;
}

// Whether one kernel computes all outputs: over one space, with products of one kind. Leaves the products of one that does.
bool is_one_problem(const SpecGraph& graph, std::optional<SplitSpec>& split) {
  try {
    if (graph.has(OpKind::product)) {
      split = split_products(graph);
      require_sound_shapes(SpecGraph::as_spelled(split->epilogue));
      return !why_unlike(graph.spec.name(), split->products);
    }
    require_one_space(graph);
    return true;
  } catch (const UserError&) { // the one way to ask whether a spec is sound as a whole
    return false;
  }
}

// Whether one kernel has the products of all outputs.
bool has_alike_products(const SpecGraph& graph) {
  return !graph.has(OpKind::product) || !why_unlike(graph.spec.name(), split_products(graph).products);
}

// Outputs over one space are one problem, as they are in a kernel of their own, unless their products are unlike. Throws UserError for one
// that has no space by itself.
std::vector<Numbers> outputs_by_space(const KernelSpec& spec) {
  std::vector<Numbers> result;
  std::vector<Shape> spaces;
  for (std::size_t i = 0; i < spec.outputs().size(); ++i) {
    const Shape space = iteration_space(SpecGraph::as_spelled(with_outputs(spec, {i})));
    std::size_t problem = 0;
    for (; problem < result.size(); ++problem) {
      if (spaces[problem] != space) continue;
      Numbers joined = result[problem];
      joined.push_back(i);
      if (has_alike_products(SpecGraph::as_spelled(with_outputs(spec, joined)))) break;
    }
    if (problem == result.size()) {
      result.emplace_back();
      spaces.push_back(space);
    }
    result[problem].push_back(i);
  }
  return result;
}

// Workgroups of two problems run in any order.
void require_own_memory(const std::vector<KernelSpec>& problems) {
  for (const KernelSpec& writer : problems)
    for (const Output& output : writer.outputs())
      for (const KernelSpec& reader : problems) {
        if (output.in_place_of.empty() || &reader == &writer) continue;
        if (std::ranges::any_of(reader.inputs(), [&](const Expr& input) { return input->name == output.in_place_of; }))
          throw UserError(fmt::format("output '{}' in place of '{}'", output.name, output.in_place_of),
                          fmt::format("output '{}' is of another problem and reads '{}' too, in workgroups that run at unknown times",
                                      reader.outputs().front().name, output.in_place_of),
                          "give the output memory of its own, or compute the two in two kernels");
      }
}

} // namespace

Problems problems_of(const SpecGraph& graph) {
  const bool alone = graph.has(OpKind::sort) || has_part(graph);
  if (graph.spec.outputs().size() < 2 || alone) return {};
  if (std::optional<SplitSpec> split; is_one_problem(graph, split)) return {.split = std::move(split)};
  std::vector<KernelSpec> problems;
  for (const Numbers& outputs : outputs_by_space(graph.spec)) problems.push_back(with_outputs(graph.spec, outputs));
  if (problems.size() < 2) return {};
  if (problems.size() > max_problems)
    throw UserError(fmt::format("kernel '{}'", graph.spec.name()), fmt::format("its outputs have {} unlike shapes", problems.size()),
                    fmt::format("compute at most {} in one kernel", max_problems));
  require_own_memory(problems);
  for (const KernelSpec& problem : problems) {
    const SpecGraph own = SpecGraph::as_spelled(problem);
    require_sound_names(own);
    require_one_space(own);
  }
  return {.specs = std::move(problems)};
}

} // namespace kiln
