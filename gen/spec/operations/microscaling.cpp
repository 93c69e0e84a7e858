// Microscaling (MX): scales that are powers of two, and the OCP rule that finds them.
#include "gen/error.h"
#include "gen/spec/math.h"
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

std::string subject_of_scaled(Op op) { return fmt::format("operation '{}'", info(op).name); }

Expr make_scaled(Op op, Expr x, Expr scale) {
  const auto subject = subject_of_scaled(op);
  if (x.dtype() == boolean) throw UserError(subject, "its operand is bool", "use cast(f32, ...) to compute with 0 and 1");
  if (scale.dtype() != e8m0)
    throw UserError(subject, fmt::format("its scale is {}", to_string(scale.dtype())),
                    "give it an e8m0: an input of that type, or cast(e8m0, ...), the power of two at or below a number");
  Shape shape = broadcast(info(op).name, x.shape(), scale.shape());
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = {std::move(x), std::move(scale)}});
}

void require_element(const char* operation, DType type) {
  if (!is_mx_element(type))
    throw UserError(fmt::format("operation '{}'", operation), fmt::format("{} is no element type of an MX format", to_string(type)),
                    "use e2m1 (MXFP4), e4m3fn or e5m2 (MXFP8)");
}

// The columns of `x`, which have to be whole blocks.
Dim whole_blocks(const char* operation, const Expr& x) {
  const auto subject = fmt::format("operation '{}'", operation);
  if (x.shape().empty() || x.shape().back().is_dynamic())
    throw UserError(subject, fmt::format("its operand has shape {}", to_text(x.shape())), "give it columns, in number");
  const std::int64_t cols = x.shape().back().size();
  if (cols % mx_block)
    throw UserError(subject, fmt::format("{} columns are no whole blocks of {}", cols, mx_block),
                    fmt::format("pad the rows to {} columns", group_count(cols, mx_block) * mx_block));
  return cols;
}

void require_scale_of(const char* operation, const Expr& x, const Expr& scale) {
  const Dim cols = whole_blocks(operation, x);
  if (scale.shape().empty() || !same_size(scale.shape().back(), cols.size() / mx_block))
    throw UserError(fmt::format("operation '{}'", operation),
                    fmt::format("its scale has shape {}, but {} columns make {} blocks of {}", to_text(scale.shape()), cols.size(),
                                cols.size() / mx_block, mx_block),
                    fmt::format("give it a scale whose last dimension is {}", cols.size() / mx_block));
}

} // namespace

bool is_mx_element(DType type) { return type == e2m1 || is_ocp_fp8(type); }

void require_blocks(const std::string& subject, DType type, const Shape& shape, Layout layout) {
  if (layout == Layout::strided)
    throw UserError(subject, fmt::format("it is {} and strided", to_string(type)), "use Layout::contiguous: two numbers share a byte");
  if (shape.empty() || shape.back().is_dynamic() || shape.back().size() % mx_block)
    throw UserError(subject, fmt::format("it is {}{}, whose rows are no whole blocks of {}", to_string(type), to_text(shape), mx_block),
                    fmt::format("give the last dimension a number, a multiple of {}", mx_block));
}

Expr scale_up(Expr x, Expr scale) { return make_scaled(Op::scale_up, std::move(x), std::move(scale)); }
Expr scale_down(Expr x, Expr scale) { return make_scaled(Op::scale_down, std::move(x), std::move(scale)); }

Expr mx_scale(DType type, Expr x) {
  require_element("mx_scale", type);
  whole_blocks("mx_scale", x);
  // The cast takes the power of two at or below. It comes first: the quotient is then exact, also where it is denormal.
  const double of_type = std::ldexp(1.0, std::ilogb(max_finite(type)));
  return cast(e8m0, scale_down(cast(e8m0, group_absmax_nan(std::move(x), mx_block)), cast(e8m0, of_type)));
}

std::optional<ScaleRule> scale_rule(const Expr& scale) {
  const auto is_power = [](const Expr& e) { return e.op() == Op::cast && e.dtype() == e8m0; };
  if (!is_power(scale) || scale.operands()[0].op() != Op::scale_down) return {};
  const Expr &power = scale.operands()[0].operands()[0], &over = scale.operands()[0].operands()[1];
  if (!is_power(power) || !is_power(over) || over.operands()[0].op() != Op::constant) return {};
  const float divisor = over.operands()[0]->value;
  if (!(divisor >= 2 && divisor < 0x1p127F)) return {};
  return ScaleRule{power.operands()[0], std::ilogb(divisor)};
}

bool is_scale_of_blocks(const Expr& scale, const Expr& x) {
  const auto rule = scale_rule(scale.op() == Op::ungroup ? scale.operands()[0] : scale);
  return rule && rule->exponent >= 2 && rule->magnitude.op() == Op::group_absmax_nan && rule->magnitude.operands()[0].same_node(x);
}

Expr mx_quantise(DType type, Expr x, Expr scale) {
  require_element("mx_quantise", type);
  require_scale_of("mx_quantise", x, scale);
  const Dim cols = x.shape().back();
  return cast(type, scale_down(std::move(x), ungroup(std::move(scale), mx_block, cols)));
}

Expr mx_dequantise(Expr q, Expr scale) {
  require_element("mx_dequantise", q.dtype());
  require_scale_of("mx_dequantise", q, scale);
  const Dim cols = q.shape().back();
  return scale_up(std::move(q), ungroup(std::move(scale), mx_block, cols));
}

} // namespace kiln
