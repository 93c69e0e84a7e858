// Expr: leaves, casts, reductions, and the rules of shapes.
#include "gen/spec/expr.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t max_group = 512;

void require_shape(const std::string& subject, const Shape& shape) {
  if (shape.size() > static_cast<std::size_t>(max_rank))
    throw UserError(subject, fmt::format("the shape {} has {} dimensions", to_text(shape), shape.size()),
                    fmt::format("use at most {}", max_rank));
  for (const Dim& dim : shape)
    if (!dim.is_dynamic() && (dim.size() < 1 || dim.size() > max_dim_size))
      throw UserError(subject, fmt::format("the shape {} has a dimension of {}", to_text(shape), dim.size()),
                      fmt::format("use sizes from 1 to {}; a size that may be zero at run time is dynamic(\"rows\")", max_dim_size));
}

// The size of the last dimension of a reduction's operand.
std::int64_t require_reducible(Op op, const Expr& x) {
  const auto subject = fmt::format("reduction '{}'", info(op).name);
  if (x.shape().empty()) throw UserError(subject, "its operand has shape [], one value for all", "reduce a value of shape [rows, cols]");
  if (x.dtype() == boolean) throw UserError(subject, "its operand is bool", "use cast(f32, ...) to count with 0 and 1");
  const Dim& last = x.shape().back();
  if (last.is_dynamic())
    throw UserError(subject, fmt::format("the last dimension of {} is known only at launch", to_text(x.shape())),
                    "give it a number: kernels are specialised for their columns");
  return last.size();
}

void require_group(const std::string& subject, std::int64_t group) {
  if (group < 2 || group > max_group || !std::has_single_bit(static_cast<std::uint64_t>(group)))
    throw UserError(subject, fmt::format("the group size is {}", group), fmt::format("use a power of two from 2 to {}", max_group));
}

Expr make_cast(DType type, Expr x, bool saturate) {
  if (x.op() == Op::constant && x.dtype() == i32 && type != i32) x = constant(x->value);
  if (x.dtype() == type) return x;
  if (x.op() == Op::stack) {
    std::vector<Expr> values;
    for (const Expr& value : x.operands()) values.push_back(make_cast(type, value, saturate));
    return stack(std::move(values));
  }
  if (type == i64) throw UserError("operation 'cast'", "it rounds to i64", "use i32: i64 is the type of indices that a kernel is given");
  return Expr(Node{.op = Op::cast, .dtype = type, .shape = x.shape(), .operands = {x}, .saturate = saturate});
}

} // namespace

Expr::Expr(double value)
    : Expr(value == std::floor(value) && std::fabs(value) <= 0x1p32 ? whole_number(static_cast<std::int64_t>(value))
                                                                    : constant(static_cast<float>(value))) {}
Expr::Expr(Node node) {
  node.depth = 0;
  for (const Expr& operand : node.operands) node.depth = std::max(node.depth, operand->depth + 1);
  if (node.depth > max_depth)
    throw UserError(fmt::format("operation '{}'", info(node.op).name),
                    fmt::format("more than {} operations stand one upon another, each on the result of the one before", max_depth),
                    "split the kernel, or combine terms in pairs: (a + b) + (c + d)");
  node_ = std::make_shared<const Node>(std::move(node));
}
Op Expr::op() const { return node_->op; }
DType Expr::dtype() const { return node_->dtype; }
const Shape& Expr::shape() const { return node_->shape; }
std::span<const Expr> Expr::operands() const { return node_->operands; }

Expr input(std::string name, DType type, Shape shape, Layout layout) {
  require_name("input", name);
  const auto subject = fmt::format("input '{}'", name);
  require_shape(subject, shape);
  if (layout == Layout::strided && shape.size() < 2)
    throw UserError(subject, fmt::format("it is strided, but its shape {} has no dimension to step over", to_text(shape)),
                    "use Layout::contiguous, or give it two dimensions");
  if (layout == Layout::preshuffled && (shape.size() != 2 || shape[0].is_dynamic()))
    throw UserError(subject, fmt::format("it is preshuffled, but its shape is {}", to_text(shape)),
                    "give it two dimensions, the rows in number: [n, k]");
  if (is_packed(type)) require_blocks(subject, type, shape, layout);
  return Expr(Node{.op = Op::input, .dtype = type, .shape = std::move(shape), .name = std::move(name), .layout = layout});
}

Expr scalar(std::string name, DType type) {
  require_name("scalar", name);
  if (type != f32 && type != i32)
    throw UserError(fmt::format("scalar '{}'", name), fmt::format("its type is {}", to_string(type)), "use f32 or i32");
  return Expr(Node{.op = Op::scalar, .dtype = type, .name = std::move(name)});
}

Expr constant(float value) { return Expr(Node{.op = Op::constant, .dtype = f32, .value = value}); }

Expr whole_number(std::int64_t number) {
  const auto value = static_cast<float>(number);
  if (static_cast<double>(value) == static_cast<double>(number)) return constant(value);
  return Expr(Node{.op = Op::constant, .dtype = i32, .value = value, .whole = number});
}

Expr cast(DType type, Expr x) { return make_cast(type, std::move(x), true); }

Expr cast_nonsaturating(DType type, Expr x) {
  if (!is_fp8(type))
    throw UserError("operation 'cast_nonsaturating'", fmt::format("{} never saturates or always does", to_string(type)),
                    "use cast, or an fp8 type");
  return make_cast(type, std::move(x), false);
}

Expr row_sum(Expr x) { return reduction(Op::row_sum, std::move(x)); }
Expr row_mean(Expr x) { return reduction(Op::row_mean, std::move(x)); }
Expr row_max(Expr x) { return reduction(Op::row_max, std::move(x)); }
Expr row_min(Expr x) { return reduction(Op::row_min, std::move(x)); }
Expr row_absmax(Expr x) { return reduction(Op::row_absmax, std::move(x)); }
Expr row_absmax_nan(Expr x) { return reduction(Op::row_absmax_nan, std::move(x)); }
Expr row_argmax(Expr x) { return reduction(Op::row_argmax, std::move(x)); }
Expr row_argmin(Expr x) { return reduction(Op::row_argmin, std::move(x)); }
Expr group_sum(Expr x, std::int64_t group) { return reduction(Op::group_sum, std::move(x), group); }
Expr group_mean(Expr x, std::int64_t group) { return reduction(Op::group_mean, std::move(x), group); }
Expr group_max(Expr x, std::int64_t group) { return reduction(Op::group_max, std::move(x), group); }
Expr group_min(Expr x, std::int64_t group) { return reduction(Op::group_min, std::move(x), group); }
Expr group_absmax(Expr x, std::int64_t group) { return reduction(Op::group_absmax, std::move(x), group); }
Expr group_absmax_nan(Expr x, std::int64_t group) { return reduction(Op::group_absmax_nan, std::move(x), group); }

Expr reduction(Op op, Expr x, std::int64_t group) {
  if (!is_reduction(op)) throw InternalError(fmt::format("'{}' is no reduction", info(op).name));
  const bool by_group = info(op).kind == OpKind::group_reduce;
  if (by_group) require_group(fmt::format("reduction '{}'", info(op).name), group);
  const std::int64_t cols = require_reducible(op, x);
  Shape shape = x.shape();
  shape.back() = by_group ? group_count(cols, group) : 1;
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x)}, .group = by_group ? group : 0});
}

Expr ungroup(Expr x, std::int64_t group, const Dim& cols) {
  require_group("operation 'ungroup'", group);
  if (cols.is_dynamic())
    throw UserError("operation 'ungroup'", fmt::format("the number of columns {} is known only at launch", cols.text()),
                    "give it a number");
  require_shape("operation 'ungroup'", {cols});
  const std::int64_t groups = group_count(cols.size(), group);
  if (x.shape().empty() || !same_size(x.shape().back(), groups))
    throw UserError(
        "operation 'ungroup'",
        fmt::format("its operand has shape {}, but {} columns make {} groups of {}", to_text(x.shape()), cols.size(), groups, group),
        fmt::format("give it a value whose last dimension is {}", groups));
  Shape shape = x.shape();
  shape.back() = cols;
  return Expr(Node{.op = Op::ungroup, .dtype = x.dtype(), .shape = std::move(shape), .operands = {x}, .group = group});
}

Expr transpose(Expr x) {
  Shape shape = x.shape();
  if (shape.size() != 2)
    throw UserError("operation 'transpose'", fmt::format("its operand has the shape {}", to_text(shape)),
                    "give it [rows, groups], as group reductions make them");
  std::swap(shape[0], shape[1]);
  const DType type = x.dtype();
  return Expr(Node{.op = Op::transpose, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}});
}

std::string type_text(const Expr& value) { return fmt::format("{}{}", to_string(value.dtype()), to_text(value.shape())); }

std::string_view suffix(Layout layout) {
  return layout == Layout::strided ? " strided" : layout == Layout::preshuffled ? " preshuffled" : "";
}

std::int64_t group_count(std::int64_t cols, std::int64_t group) { return (cols + group - 1) / group; }

Shape broadcast(std::string_view what, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& mine = result[offset + i];
    const Dim& other = shorter[i];
    if (same_size(other, 1)) continue;
    if (same_size(mine, 1)) mine = other;
    else if (!same_size(mine, other))
      throw UserError(fmt::format("operation '{}'", what),
                      fmt::format("shapes {} and {} do not broadcast: {} against {} in dimension {} from the right", to_text(a), to_text(b),
                                  a.size() >= b.size() ? mine.text() : other.text(), a.size() >= b.size() ? other.text() : mine.text(),
                                  shorter.size() - i),
                      "make the sizes equal, or one of them 1");
  }
  return result;
}

} // namespace kiln
