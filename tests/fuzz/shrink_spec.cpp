// shrink_spec: candidates in order of what they leave out, the first that still fails is taken.
#include "tests/fuzz/shrink_spec.h"
#include "gen/error.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include <optional>

namespace kiln::testing {
namespace {

Expr rebuilt_view(const Expr& node, const std::vector<Expr>& operands) {
  switch (node.op()) {
  case Op::gather: return gather(operands[0], operands[1], {.checked = node->checked});
  case Op::tile: return tile(operands[0], node->step);
  case Op::repeat: return repeat(operands[0], node->step);
  case Op::shift_columns: return shift_columns(operands[0], node->step);
  case Op::unstack: return unstack(operands[0], node->first);
  default: return partner(operands[0], node->step);
  }
}

// `node` with other operands; shapes follow. Throws UserError where they make no sense.
Expr rebuilt(const Expr& node, const std::vector<Expr>& operands) {
  switch (info(node.op()).kind) {
  case OpKind::leaf:
  case OpKind::position: return node;
  case OpKind::view: return rebuilt_view(node, operands);
  case OpKind::scatter: return scatter(operands[0], operands[1], operands[2], {.checked = node->checked, .duplicates = node->duplicates});
  case OpKind::cast: return node->saturate ? cast(node.dtype(), operands[0]) : cast_nonsaturating(node.dtype(), operands[0]);
  case OpKind::row_reduce:
  case OpKind::group_reduce: return reduction(node.op(), operands[0], node->group);
  case OpKind::rank: return row_top(operands[0], node->step);
  case OpKind::pick: return pick(operands[0], operands[1]);
  case OpKind::stack: return stack(operands);
  case OpKind::scan: return row_cumsum(operands[0]);
  case OpKind::scaled: return node.op() == Op::scale_up ? scale_up(operands[0], operands[1]) : scale_down(operands[0], operands[1]);
  case OpKind::transpose: return node.op() == Op::transpose ? transpose(operands[0]) : node;
  case OpKind::ungroup: return ungroup(operands[0], node->group, node.shape().back());
  case OpKind::product:
  case OpKind::experts:
  case OpKind::sort:
  case OpKind::columns: return node;
  default: return pointwise(node.op(), operands);
  }
}

// The spec with `by` in the place of `replaced`; nothing when that is no valid spec.
std::optional<KernelSpec> with_replaced(const KernelSpec& spec, const Expr& replaced, const Expr& by) {
  try {
    std::unordered_map<const Node*, Expr> now;
    for (const Expr& node : nodes_in_order(spec)) {
      std::vector<Expr> operands;
      for (const Expr& operand : node.operands()) operands.push_back(now.at(&operand.node()));
      Expr result = rebuilt(node, operands);
      if (node.same_node(replaced)) {
        const auto known = now.find(&by.node());
        result = known == now.end() ? by : known->second;
      }
      now.emplace(&node.node(), std::move(result));
    }
    KernelSpec smaller(spec.name());
    for (const Output& o : spec.outputs())
      smaller.output(o.name, o.dtype, now.at(&o.value.node()), {.in_place_of = o.in_place_of, .layout = o.layout});
    validate(smaller);
    return smaller;
  } catch (const UserError&) {
    return {};
  }
}

std::optional<KernelSpec> without_output(const KernelSpec& spec, std::size_t dropped) {
  try {
    KernelSpec smaller(spec.name());
    for (std::size_t i = 0; i < spec.outputs().size(); ++i) {
      const Output& o = spec.outputs()[i];
      if (i != dropped) smaller.output(o.name, o.dtype, o.value, {.in_place_of = o.in_place_of, .layout = o.layout});
    }
    validate(smaller);
    return smaller;
  } catch (const UserError&) { // an output in place of an input that only the dropped one used
    return {};
  }
}

// Each candidate has fewer outputs or fewer nodes than the spec.
std::vector<KernelSpec> smaller_specs(const KernelSpec& spec) {
  std::vector<KernelSpec> result;
  const auto nodes = nodes_in_order(spec);
  const auto add = [&](std::optional<KernelSpec> candidate) {
    if (candidate && nodes_in_order(*candidate).size() < nodes.size()) result.push_back(std::move(*candidate));
  };
  if (spec.outputs().size() > 1)
    for (std::size_t i = 0; i < spec.outputs().size(); ++i)
      if (auto candidate = without_output(spec, i)) result.push_back(std::move(*candidate));
  for (std::size_t i = nodes.size(); i-- > 0;) { // from the outputs down: the largest pieces first
    if (info(nodes[i].op()).kind == OpKind::leaf) continue;
    for (const Expr& operand : nodes[i].operands()) add(with_replaced(spec, nodes[i], operand));
    if (nodes[i].dtype() != boolean) add(with_replaced(spec, nodes[i], constant(1)));
  }
  return result;
}

} // namespace

KernelSpec shrink_spec(KernelSpec spec, const std::function<bool(const KernelSpec&)>& fails) {
  spec = merge_equal_nodes(spec);
  for (bool again = true; again;) {
    again = false;
    for (KernelSpec& candidate : smaller_specs(spec)) {
      if (!fails(candidate)) continue;
      spec = merge_equal_nodes(candidate);
      again = true;
      break;
    }
  }
  return spec;
}

} // namespace kiln::testing
