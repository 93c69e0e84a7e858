// Graph: walks over the nodes of a spec.
#include "gen/spec/graph.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kiln {
namespace {

// The bytes of numbers, and texts with their length before them: no two lists of parts give the same key.
template <class T> void append(std::string& key, T value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }
void append(std::string& key, const std::string& text) {
  append(key, text.size());
  key += text;
}

// Everything that tells a node from another, given that equal operands have equal numbers. Not printed: a spec is looked up by it in
// every process that finds its kernel in a cache, and formatting takes longer than the rest.
std::string structure_key(const Node& node, const std::unordered_map<const Node*, std::size_t>& numbers) {
  std::string key;
  append(key, node.op), append(key, node.dtype), append(key, node.layout), append(key, node.saturate);
  append(key, node.checked), append(key, node.duplicates), append(key, node.in_registers);
  append(key, std::isnan(node.value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(node.value));
  append(key, node.whole), append(key, node.group), append(key, node.first), append(key, node.step);
  append(key, node.name);
  append(key, node.shape.size());
  for (const Dim& dim : node.shape) {
    append(key, dim.name());
    append(key, dim.is_dynamic() ? dim.min().value_or(-1) : dim.size());
    append(key, dim.is_dynamic() ? dim.max().value_or(-1) : 0);
  }
  for (const Expr& operand : node.operands) append(key, numbers.at(&operand.node()));
  return key;
}

// An iota of as many numbers as there are ranks, and not columns.
bool counts_ranks(std::span<const Expr> nodes, const Expr& iota) {
  if (iota.op() != Op::iota || iota.shape().size() != 1 || iota.shape()[0].is_dynamic()) return false;
  const auto counts = [&](const Expr& node) {
    return node.op() == Op::row_top && node->step == iota.shape()[0].size() && node.operands()[0].shape().back().size() != node->step;
  };
  return iota.shape()[0].size() > 1 && std::ranges::any_of(nodes, counts);
}

// Leaves are one when they say the same; two different leaves of one name both stay, for validate to find.
bool same_leaf(const Expr& a, const Expr& b) {
  return a->name == b->name && a->dtype == b->dtype && a->shape == b->shape && a->layout == b->layout;
}

} // namespace

std::vector<Expr> nodes_in_order(std::span<const Expr> roots) {
  struct Visit {
    Expr node;
    std::size_t next_operand;
  };
  std::vector<Expr> order;
  std::unordered_set<const Node*> seen;
  std::vector<Visit> stack;
  for (const Expr& root : roots) {
    if (seen.insert(&root.node()).second) stack.push_back({root, 0});
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next_operand == top.node.operands().size()) {
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      const Expr operand = top.node.operands()[top.next_operand++];
      if (seen.insert(&operand.node()).second) stack.push_back({operand, 0});
    }
  }
  return order;
}

std::vector<Expr> nodes_in_order(const KernelSpec& spec) {
  std::vector<Expr> roots;
  for (const Output& output : spec.outputs()) roots.push_back(output.value);
  return nodes_in_order(roots);
}

KernelSpec merge_equal_nodes(const KernelSpec& spec) {
  std::unordered_map<const Node*, std::size_t> numbers; // of the nodes of `spec`
  std::unordered_map<std::string, std::size_t> known;
  std::vector<Expr> merged; // by number
  for (const Expr& expr : nodes_in_order(spec)) {
    const auto [found, is_new] = known.try_emplace(structure_key(expr.node(), numbers), merged.size());
    numbers[&expr.node()] = found->second;
    if (!is_new) continue;
    Node node = expr.node();
    for (Expr& operand : node.operands) operand = merged[numbers.at(&operand.node())];
    merged.push_back(Expr(std::move(node)));
  }
  KernelSpec result(spec.name());
  for (const Output& output : spec.outputs())
    result.output(output.name, output.dtype, merged[numbers.at(&output.value.node())],
                  {.in_place_of = output.in_place_of, .layout = output.layout});
  return result;
}

SpecGraph::SpecGraph(const KernelSpec& given) : SpecGraph(merge_equal_nodes(given), AsSpelled{}) {}

SpecGraph::SpecGraph(KernelSpec given, AsSpelled) : spec(std::move(given)), nodes(nodes_in_order(spec)) {
  const auto add_once = [](auto& list, const auto& one, const auto& same) {
    if (std::ranges::none_of(list, [&](const auto& known) { return same(known, one); })) list.push_back(one);
  };
  for (const Expr& node : nodes) {
    if (node.op() == Op::input) add_once(inputs, node, same_leaf);
    if (node.op() == Op::scalar) add_once(scalars, node, same_leaf);
    if (node->group) add_once(group_sizes, node->group, std::equal_to());
    if (!node->name.empty()) names.insert(node->name);
    const OpKind kind = info(node.op()).kind;
    kinds.insert(kind);
    has_reductions |= is_reduction(node.op()) || kind == OpKind::rank || kind == OpKind::scan;
    const bool by_element = kind <= OpKind::cast && kind != OpKind::leaf;
    const auto is_ranked = [&](const Expr& operand) { return ranked.contains(&operand.node()); };
    if (kind == OpKind::rank || kind == OpKind::pick || counts_ranks(nodes, node) ||
        ((by_element || kind == OpKind::scan) && std::ranges::any_of(node.operands(), is_ranked)))
      ranked.insert(&node.node());
  }
  for (const Expr& input : inputs)
    for (const Dim& dim : input.shape())
      if (dim.is_dynamic()) add_once(dynamic_dims, dim, std::equal_to());
  for (const Dim& dim : dynamic_dims) names.insert(dim.name());
  for (const Output& output : spec.outputs()) names.insert(output.name);
}

std::vector<Expr> KernelSpec::inputs() const { return SpecGraph::as_spelled(*this).inputs; }
std::vector<Expr> KernelSpec::scalars() const { return SpecGraph::as_spelled(*this).scalars; }
std::vector<Dim> KernelSpec::dynamic_dims() const { return SpecGraph::as_spelled(*this).dynamic_dims; }

} // namespace kiln
