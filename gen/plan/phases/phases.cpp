// Phases: what the first of two leaves for the second.
#include "gen/plan/phases/phases.h"
#include "gen/spec/names.h"
#include "gen/spec/product.h"
#include <algorithm>
#include <fmt/format.h>
#include <ranges>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace kiln {
namespace {

using Nodes = std::unordered_set<const Node*>;

bool is_of_product(OpKind kind) { return kind == OpKind::product || kind == OpKind::columns || kind == OpKind::experts; }

// Whether a value needs other columns of a row than its own.
bool needs_rows(const Expr& node) {
  const OpKind kind = info(node.op()).kind;
  return is_reduction(node.op()) || kind == OpKind::rank || kind == OpKind::pick || kind == OpKind::scan || kind == OpKind::view ||
         node.op() == Op::ungroup;
}

class Splitter {
public:
  explicit Splitter(const SpecGraph& graph) : graph_(graph) {
    const bool inner = has_inner_products(graph);
    for (const Expr& node : graph.nodes) {
      const auto any_of = [&](const Nodes& of) {
        return std::ranges::any_of(node.operands(), [&](const Expr& operand) { return of.contains(&operand.node()); });
      };
      if (any_of(late_) || (inner ? reads_computed_rows(node) : needs_rows(node))) late_.insert(&node.node());
      if (any_of(of_products_) || info(node.op()).kind == OpKind::product) of_products_.insert(&node.node());
    }
  }

  Phases run() {
    for (const Output& output : graph_.spec.outputs())
      if (!is_first(output)) leave(output.value);
    for (const Expr& node : graph_.nodes) {
      const bool reads = reads_computed_rows(node);
      if (reads && !late_.contains(&node.operands()[0].node())) rows_.insert(&node.operands()[0].node());
      if (late_.contains(&node.node()))
        for (const Expr& operand : node.operands().subspan(reads ? 1 : 0)) leave(operand);
    }
    compute_again();
    for (const Output& output : graph_.spec.outputs()) // what the first phase overwrites, the second cannot read
      if (is_first(output) && reads_in_second(output.in_place_of)) second_.insert(output.name);
    for (const Output& output : graph_.spec.outputs())
      if (second_.contains(output.name)) leave(output.value);
    compute_again();
    Phases result{KernelSpec(graph_.spec.name()), KernelSpec(graph_.spec.name()), {}};
    hand_over(result);
    const auto rewritten = rewrite();
    for (const Output& o : graph_.spec.outputs()) {
      if (is_first(o)) result.first.output(o.name, o.dtype, o.value, {.in_place_of = o.in_place_of, .layout = o.layout});
      else
        result.second.output(o.name, o.dtype, rewritten.at(&o.value.node()),
                             {.in_place_of = reads_in_second(o.in_place_of) ? o.in_place_of : "", .layout = o.layout});
    }
    return result;
  }

private:
  // Whether the first phase has an output: nothing that needs rows goes into it, and it is no number a row.
  bool is_first(const Output& output) const {
    if (second_.contains(output.name) || late_.contains(&output.value.node())) return false;
    return of_products_.contains(&output.value.node()) || !same_size(output.value.shape().back(), 1);
  }
  bool is_left(const Expr& e) const { return left_.contains(&e.node()); }
  void leave(const Expr& e) {
    if (of_products_.contains(&e.node()) && !late_.contains(&e.node())) left_.insert(&e.node());
  }

  // The second phase computes again what follows from the rest of what is left; and bools, which are not stored.
  void compute_again() {
    for (const Expr& node : graph_.nodes | std::views::reverse) {
      if (!is_left(node) || is_of_product(info(node.op()).kind)) continue;
      const auto is_at_hand = [&](const Expr& e) { return is_left(e) || !of_products_.contains(&e.node()); };
      if (!std::ranges::all_of(node.operands(), is_at_hand) && node.dtype() != DType::boolean) continue;
      left_.erase(&node.node());
      for (const Expr& operand : node.operands()) leave(operand);
    }
  }

  // What a product multiplies, and other operations read too, is there twice: an operand of a product is nothing else.
  void hand_over(Phases& result) {
    const auto stand_in = [&](const Expr& node) {
      const std::string name = unused_name(fmt::format("between{}", result.between.size()), graph_.names);
      result.first.output(name, node.dtype(), node);
      return result.between.emplace_back(input(name, node.dtype(), node.shape()));
    };
    for (const Expr& node : graph_.nodes) {
      if (is_left(node)) stand_ins_.emplace(&node.node(), stand_in(node));
      if (rows_.contains(&node.node())) row_stand_ins_.emplace(&node.node(), stand_in(node));
    }
  }

  // The nodes as the second phase has them; what only the first one has is not there.
  std::unordered_map<const Node*, Expr> rewrite() const {
    std::unordered_map<const Node*, Expr> result;
    for (const Expr& node : graph_.nodes) {
      if (const auto found = stand_ins_.find(&node.node()); found != stand_ins_.end()) {
        result.emplace(&node.node(), found->second);
        continue;
      }
      const bool reads = reads_computed_rows(node) && rows_.contains(&node.operands()[0].node());
      const auto is_known = [&](const Expr& operand) { return result.contains(&operand.node()); };
      if (info(node.op()).kind == OpKind::product && !late_.contains(&node.node())) continue;
      if (!std::ranges::all_of(node.operands().subspan(reads ? 1 : 0), is_known)) continue;
      Node copy = node.node();
      for (std::size_t i = reads ? 1 : 0; i < copy.operands.size(); ++i) copy.operands[i] = result.at(&copy.operands[i].node());
      if (reads) copy.operands[0] = row_stand_ins_.at(&copy.operands[0].node());
      result.emplace(&node.node(), Expr(std::move(copy)));
    }
    return result;
  }

  // Whether the second phase reads an input: behind what is left for it, none is.
  bool reads_in_second(const std::string& name) const {
    Nodes wanted;
    for (const Output& output : graph_.spec.outputs())
      if (!is_first(output)) wanted.insert(&output.value.node());
    for (const Expr& node : graph_.nodes | std::views::reverse) {
      if (!wanted.contains(&node.node()) || is_left(node)) continue;
      if (node.op() == Op::input && node->name == name) return true;
      for (const Expr& operand : node.operands().subspan(reads_computed_rows(node) ? 1 : 0)) wanted.insert(&operand.node());
    }
    return false;
  }

  const SpecGraph& graph_;
  Nodes of_products_, late_;     // what depends on a product; what needs rows
  Nodes left_;                   // what the first phase leaves for the second
  std::set<std::string> second_; // outputs that tiles could compute, but that the second phase has
  Nodes rows_;                   // what products of the second phase multiply
  std::unordered_map<const Node*, Expr> stand_ins_, row_stand_ins_;
};

} // namespace

bool has_inner_products(const SpecGraph& graph) { return std::ranges::any_of(graph.nodes, reads_computed_rows); }

Phases split_phases(const SpecGraph& graph) { return Splitter(graph).run(); }

} // namespace kiln
