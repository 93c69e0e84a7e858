// Output order: what reorders an output is taken off its value.
#include "gen/plan/output_order.h"
#include "gen/error.h"
#include <fmt/format.h>

namespace kiln {
namespace {

std::string_view order_of(Op op) { return op == Op::heads_first ? "in the order of heads" : "transposed"; }

// The output's value before `op`; the value as it is without one.
Expr before(const Output& output, Op op, std::set<std::string>& moved) {
  const Expr& value = output.value;
  const bool rounds = value.op() == Op::cast && value.operands()[0].op() == op;
  const Expr& last = rounds ? value.operands()[0] : value;
  if (last.op() != op) return value;
  if (!output.in_place_of.empty())
    throw UserError(fmt::format("output '{}' in place of '{}'", output.name, output.in_place_of), fmt::format("it is {}", order_of(op)),
                    "give the output memory of its own");
  if (output.layout != Layout::contiguous)
    throw UserError(fmt::format("output '{}'", output.name), fmt::format("it is {}, and{}", order_of(op), suffix(output.layout)),
                    "use Layout::contiguous");
  moved.insert(output.name);
  if (!rounds) return last.operands()[0];
  Node cast = value.node();
  cast.operands = {last.operands()[0]};
  cast.shape = cast.operands[0].shape();
  return Expr(std::move(cast));
}

} // namespace

OrderedOutputs in_order_of_rows(const KernelSpec& spec, Op op) {
  OrderedOutputs ordered{.spec = KernelSpec(spec.name()), .moved = {}};
  for (const Output& output : spec.outputs())
    ordered.spec.output(output.name, output.dtype, before(output, op, ordered.moved),
                        {.in_place_of = output.in_place_of, .layout = output.layout});
  for (const Expr& node : nodes_in_order(ordered.spec))
    if (node.op() == op)
      throw UserError(fmt::format("operation '{}'", info(op).name),
                      fmt::format("an operation, or two outputs, take its result {}", order_of(op)),
                      "let it be the last one before an output, and compute the rest in the order of rows");
  return ordered;
}

} // namespace kiln
