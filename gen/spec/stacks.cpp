// Stacks: the spec with a tensor for each index of a second dimension that is taken apart or put together.
#include "gen/spec/stacks.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>
#include <utility>

namespace kiln {
namespace {

Shape without_second(Shape shape) {
  shape.erase(shape.begin() + 1);
  return shape;
}

class StackLowering {
public:
  explicit StackLowering(const SpecGraph& graph) : graph_(graph), lowered_{KernelSpec(graph.spec.name()), {}} {}

  LoweredStacks run() {
    for (const Expr& node : graph_.nodes)
      if (node.op() != Op::stack && !scatters_stack(node)) known_.emplace(&node.node(), lowered(node));
    for (const Output& output : graph_.spec.outputs()) add_output(output);
    lowered_.spec = merge_equal_nodes(lowered_.spec);
    return std::move(lowered_);
  }

private:
  static bool scatters_stack(const Expr& node) { return node.op() == Op::scatter && node.operands()[2].op() == Op::stack; }

  Expr lowered(const Expr& node) {
    if (node.op() == Op::unstack) {
      const Expr& x = node.operands()[0];
      if (x.op() == Op::input) return slice(x, node->first);
      return gather_of_slices(x, node->first);
    }
    std::vector<Expr> operands;
    for (const Expr& operand : node.operands()) {
      if (operand.op() == Op::stack || scatters_stack(operand))
        throw UserError(fmt::format("operation '{}'", info(operand.op()).name),
                        fmt::format("operation '{}' takes its result", info(node.op()).name),
                        "let it be an output, or the value of a scatter, and compute with what it is made of");
      operands.push_back(known_.at(&operand.node()));
    }
    const bool is_same = std::ranges::equal(operands, node.operands(), [](const Expr& a, const Expr& b) { return a.same_node(b); });
    return is_same ? node : rebuilt(node, std::move(operands));
  }
  static Expr rebuilt(const Expr& node, std::vector<Expr> operands) {
    Node copy = node.node();
    copy.operands = std::move(operands);
    return Expr(std::move(copy));
  }

  // One index of an input's second dimension, as an input.
  Expr slice(const Expr& input, std::int64_t index) {
    const std::int64_t count = input.shape()[1].size();
    Node node = input.node();
    node.name = unused_name(fmt::format("{}_{}", input->name, index), graph_.names);
    node.shape = without_second(node.shape);
    if (count > 1) node.layout = Layout::strided;
    add_slice(node.name, input->name, index, count, node.shape, input->layout);
    return Expr(std::move(node));
  }
  // `whole` may be a slice itself: then `name` is a part of that one's place.
  void add_slice(const std::string& name, const std::string& whole, std::int64_t index, std::int64_t count, const Shape& shape,
                 Layout layout) {
    std::int64_t elements = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) elements *= shape[i].size();
    const auto of_slice = lowered_.slices.find(whole);
    Slice place = of_slice == lowered_.slices.end() ? Slice{.memory = whole} : of_slice->second;
    place.first += index * elements;
    if (place.pitch == 0 && layout != Layout::strided && count > 1) place.pitch = count * elements;
    lowered_.slices[name] = std::move(place);
  }

  // The table's own second dimension, or that of the index.
  Expr gather_of_slices(const Expr& gather, std::int64_t index) {
    const Expr &table = gather.operands()[0], &places = gather.operands()[1];
    Node node = gather.node();
    node.shape = without_second(node.shape);
    node.operands = slices_of(gather, table, places, index);
    return Expr(std::move(node));
  }
  // Table and index of one index of what a gather or scatter covers.
  std::vector<Expr> slices_of(const Expr& node, const Expr& table, const Expr& places, std::int64_t index) {
    const bool input_places = places.op() == Op::input;
    if (!input_places || places.shape().size() < 3)
      throw UserError(fmt::format("operation '{}'", info(node.op()).name),
                      "it is taken apart or put together, and its index is itself unstacked", "give it an index of its own");
    const bool by_index = places.shape().size() > table.shape().size();
    if (by_index) return {table, slice(places, same_size(places.shape()[1], 1) ? 0 : index)};
    if (!same_size(places.shape()[1], 1))
      throw UserError(
          fmt::format("operation '{}'", info(node.op()).name),
          fmt::format("both its index {} and its rows {} have a second dimension", to_text(places.shape()), to_text(table.shape())),
          "give the index 1 there");
    return {slice(table, index), slice(places, 0)};
  }

  void add_output(const Output& output) {
    const Expr& value = output.value;
    scattered_ = output.name;
    if (scatters_stack(value)) return add_scatters(output, value, value.operands()[0], value.operands()[1], value.operands()[2]);
    if (value.op() == Op::stack) return add_stack(output, value);
    lowered_.spec.output(output.name, output.dtype, known_.at(&value.node()), {.in_place_of = output.in_place_of, .layout = output.layout});
  }
  // The same output for one of its values.
  Output part_of(const Output& output, std::size_t index) const {
    Output part = output;
    part.name = unused_name(fmt::format("{}_{}", output.name, index), graph_.names);
    return part;
  }

  void add_stack(const Output& output, const Expr& stack) {
    if (!output.in_place_of.empty())
      throw UserError(fmt::format("output '{}' in place of '{}'", output.name, output.in_place_of), "it is a stack",
                      "give the output memory of its own");
    for (std::size_t i = 0; i < stack.operands().size(); ++i) {
      const Expr& value = stack.operands()[i];
      Output part = part_of(output, i);
      add_slice(part.name, output.name, static_cast<std::int64_t>(i), std::ssize(stack.operands()), value.shape(), output.layout);
      part.layout = Layout::strided;
      if (value.op() == Op::stack) add_stack(part, value);
      else lowered_.spec.output(part.name, part.dtype, known_.at(&value.node()), {.layout = part.layout});
    }
  }

  void add_scatters(const Output& output, const Expr& scatter, const Expr& target, const Expr& places, const Expr& stack) {
    for (std::size_t i = 0; i < stack.operands().size(); ++i) {
      const Expr& value = stack.operands()[i];
      std::vector<Expr> operands = slices_of(scatter, target, places, static_cast<std::int64_t>(i));
      Output part = part_of(output, i);
      part.layout = operands[0]->layout;
      if (value.op() == Op::stack) {
        add_scatters(part, scatter, operands[0], operands[1], value);
        continue;
      }
      if (!part.in_place_of.empty()) part.in_place_of = operands[0]->name;
      lowered_.slices[part.name] = {.memory = scattered_};
      Node node = scatter.node();
      node.shape = operands[0].shape();
      node.operands = {operands[0], operands[1], known_.at(&value.node())};
      lowered_.spec.output(part.name, part.dtype, Expr(std::move(node)), {.in_place_of = part.in_place_of, .layout = part.layout});
    }
  }

  const SpecGraph& graph_;
  LoweredStacks lowered_;
  std::string scattered_; // the output that is being lowered
  std::unordered_map<const Node*, Expr> known_;
};

} // namespace

bool has_stacks(const SpecGraph& graph) {
  return graph.has(OpKind::stack) || std::ranges::any_of(graph.nodes, [](const Expr& node) { return node.op() == Op::unstack; });
}

LoweredStacks lower_stacks(const SpecGraph& graph) {
  if (!has_stacks(graph)) return {graph.spec, {}};
  return StackLowering(graph).run();
}

} // namespace kiln
