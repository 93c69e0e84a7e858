// Stacks: construction of unstack and stack, and what their operands must be.
#include "gen/error.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace kiln {

Expr unstack(Expr x, std::int64_t index) {
  const std::string subject = "operation 'unstack'";
  if (x.op() != Op::input && x.op() != Op::gather)
    throw UserError(subject, fmt::format("its operand is a '{}'", info(x.op()).name),
                    "apply it to an input or to a gather of one, and compute with the result");
  if (x.op() == Op::input && x->layout == Layout::preshuffled)
    throw UserError(subject, "its operand is preshuffled", "use Layout::contiguous");
  if (x.shape().size() < 3)
    throw UserError(subject, fmt::format("its operand has shape {}", to_text(x.shape())),
                    "give it three dimensions or more: [rows, n, cols]");
  const auto unknown = [](const Dim& dim) { return dim.is_dynamic(); };
  if (std::any_of(x.shape().begin() + 1, x.shape().end(), unknown))
    throw UserError(subject, fmt::format("a dimension of {} behind the first is known only at launch", to_text(x.shape())),
                    "give it a number: places of slices are a part of the kernel");
  if (is_packed(x.dtype()))
    throw UserError(subject, fmt::format("its operand is {}", to_string(x.dtype())), "give each slice as an input of its own");
  const std::int64_t count = x.shape()[1].size();
  if (index < 0 || index >= count)
    throw UserError(subject, fmt::format("the index is {}, and the second dimension of {} has {}", index, to_text(x.shape()), count),
                    fmt::format("use 0 to {}", count - 1));
  Shape shape = x.shape();
  shape.erase(shape.begin() + 1);
  const DType type = x.dtype();
  return Expr(Node{.op = Op::unstack, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}, .first = index});
}

Expr stack(std::vector<Expr> values) {
  const std::string subject = "operation 'stack'";
  if (values.size() < 2 || std::ssize(values) > max_stacked)
    throw UserError(subject, fmt::format("it has {} operands", values.size()), fmt::format("give it 2 to {}", max_stacked));
  for (const Expr& value : values)
    if (value.shape() != values[0].shape() || value.dtype() != values[0].dtype())
      throw UserError(subject, fmt::format("its operands are {} and {}", type_text(values[0]), type_text(value)),
                      "give it values of one type and shape");
  Shape shape = values[0].shape();
  if (shape.size() < 2 || std::any_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return dim.is_dynamic(); }))
    throw UserError(subject, fmt::format("its operands have shape {}", to_text(shape)),
                    "give it [rows, cols], in which only the first dimension may be known at launch alone");
  shape.insert(shape.begin() + 1, std::ssize(values));
  const DType type = values[0].dtype();
  return Expr(Node{.op = Op::stack, .dtype = type, .shape = std::move(shape), .operands = std::move(values)});
}

} // namespace kiln
