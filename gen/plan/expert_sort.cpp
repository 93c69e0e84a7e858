// Sort of pairs by expert: the split of a spec into the sort and the rest.
#include "gen/plan/expert_sort.h"
#include "gen/error.h"
#include <fmt/format.h>
#include <optional>

namespace kiln {
namespace {

bool is_sort(const Expr& e) { return info(e.op()).kind == OpKind::sort; }
std::string subject_of_sort(const SpecGraph& graph) { return fmt::format("kernel '{}'", graph.spec.name()); }

// The sort node that an output is, through its rounding to i32.
std::optional<Expr> sort_of(const Output& output) {
  const Expr& value = output.value.op() == Op::cast ? output.value.operands()[0] : output.value;
  return is_sort(value) ? std::optional(value) : std::nullopt;
}

// What a sort gives is stored, and nothing is computed from it.
void require_stored(const SpecGraph& graph) {
  for (const Expr& node : graph.nodes)
    for (const Expr& operand : node.operands())
      if (is_sort(operand) && node.op() != Op::cast)
        throw UserError(fmt::format("operation '{}'", info(operand.op()).name), fmt::format("operation '{}' uses it", info(node.op()).name),
                        "make it an output of i32, and use that in another kernel");
  for (const Output& output : graph.spec.outputs())
    if (sort_of(output) && (output.dtype != i32 || output.layout != Layout::contiguous || !output.in_place_of.empty()))
      throw UserError(fmt::format("output '{}'", output.name), fmt::format("it is {}, and holds pairs or offsets", to_string(output.dtype)),
                      "give it i32, contiguous, in memory of its own");
}

} // namespace

SplitSort split_sort(const SpecGraph& graph) {
  require_stored(graph);
  SplitSort split{KernelSpec(graph.spec.name()), {.experts = {}, .tokens = 1, .order = {}, .offsets = {}}};
  SortParts& parts = split.parts;
  std::optional<Expr> first;
  for (const Output& output : graph.spec.outputs()) {
    const std::optional<Expr> sort = sort_of(output);
    if (!sort) {
      split.rest.output(output.name, output.dtype, output.value, {.in_place_of = output.in_place_of, .layout = output.layout});
      continue;
    }
    std::string& place = sort->op() == Op::expert_order ? parts.order : parts.offsets;
    if (!place.empty() || (first && (!first->operands()[0].same_node(sort->operands()[0]) || (*first)->step != (*sort)->step)))
      throw UserError(subject_of_sort(graph), "it sorts pairs of tokens and experts twice", "use two kernels");
    place = output.name;
    first = sort;
  }
  if (!first || parts.order.empty() || parts.offsets.empty())
    throw UserError(subject_of_sort(graph),
                    fmt::format("it has no output with the {} of its pairs", parts.order.empty() ? "order" : "offsets"),
                    "give it both, expert_order and expert_offsets: a product by expert reads both");
  const Expr& experts = first->operands()[0];
  parts.tokens = experts.shape()[0];
  parts.top = experts.shape()[1].size();
  parts.count = (*first)->step;
  parts.alone = split.rest.outputs().empty();
  if (experts.op() == Op::input) {
    parts.experts = experts->name;
    if (!parts.alone)
      throw UserError(subject_of_sort(graph), fmt::format("it sorts its input '{}', and computes other things", parts.experts),
                      "sort in a kernel of its own, or sort a row_top of the kernel's own");
    split.rest.output(parts.order, i32, experts);
    return split;
  }
  for (const Output& output : split.rest.outputs())
    if (output.dtype == i32 && output.value.op() == Op::cast && output.value.operands()[0].same_node(experts)) parts.experts = output.name;
  if (parts.experts.empty())
    throw UserError(subject_of_sort(graph), "it sorts a row_top that is no output",
                    "make the row_top an output of i32 too: the sort reads it there");
  if (!graph.has(OpKind::product))
    throw UserError(subject_of_sort(graph), "it sorts the ranks of rows that many workgroups have",
                    "sort in a kernel of its own: moe_sort. Behind a matrix product one workgroup has all rows");
  return split;
}

} // namespace kiln
