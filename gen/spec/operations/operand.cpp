// Operands of products: the expressions that kernels can multiply by, and what the nodes of products are made of.
#include "gen/error.h"
#include "gen/spec/product.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// Built alike: a program may spell row_absmax(x) twice. Operands of products are a few nodes.
bool same(const Expr& a, const Expr& b) {
  if (a.same_node(b)) return true;
  return a.op() == b.op() && a.dtype() == b.dtype() && a.shape() == b.shape() && a->name == b->name && a->layout == b->layout &&
         a->value == b->value && a->group == b->group && std::ranges::equal(a.operands(), b.operands(), same);
}

bool is_number(const Expr& e, float value) { return e.op() == Op::constant && e->value == value; }
bool is_input(const Expr& e) { return e.op() == Op::input; }

std::optional<Expr> operand_of(const Expr& e, Op op) {
  if (e.op() != op) return {};
  return e.operands()[0];
}

// The factors of x * y * z, however they are grouped.
std::vector<Expr> factors_of(const Expr& e) {
  if (e.op() != Op::mul) return {e};
  std::vector<Expr> factors = factors_of(e.operands()[0]);
  for (Expr& factor : factors_of(e.operands()[1])) factors.push_back(std::move(factor));
  return factors;
}

// The factor of x * y that `is_first` holds for, and the other one; nothing else.
template <typename Is> std::optional<std::pair<Expr, Expr>> split_product(const Expr& e, const Is& is_first) {
  if (e.op() != Op::mul) return {};
  const Expr &x = e.operands()[0], &y = e.operands()[1];
  if (is_first(x)) return std::pair{x, y};
  if (is_first(y)) return std::pair{y, x};
  return {};
}

// ungroup(scale, group, k) of an input, or of a transposed one.
struct Scales {
  Expr input;
  std::int64_t group;
  bool by_group;
};
std::optional<Scales> scales_of(const Expr& e) {
  const std::optional<Expr> scale = operand_of(e, Op::ungroup);
  if (!scale) return {};
  const bool by_group = scale->op() == Op::transpose;
  const Expr input = by_group ? scale->operands()[0] : *scale;
  if (!is_input(input)) return {};
  return Scales{input, e->group, by_group};
}

// scale_up(x, ungroup(scale, 32, k)), as mx_dequantise writes it.
std::optional<Operand> find_mx(const Expr& e) {
  if (e.op() != Op::scale_up || !is_input(e.operands()[0])) return {};
  const std::optional<Scales> scales = scales_of(e.operands()[1]);
  if (!scales || scales->group != mx_block) return {};
  return Operand{.memory = e.operands()[0],
                 .encoding = Encoding::mx,
                 .scales = {scales->input},
                 .group = mx_block,
                 .scales_by_group = scales->by_group};
}

// x * ungroup(scale, 128, k), and x * ungroup_rows(ungroup(scale, 128, k), 128, n).
std::optional<Operand> find_block_scaled(const Expr& e) {
  const auto parts = split_product(e, is_input);
  if (!parts) return {};
  const std::optional<Expr> of_rows = operand_of(parts->second, Op::ungroup_rows);
  if (of_rows && parts->second->group != scale_block) return {};
  const std::optional<Scales> scales = scales_of(of_rows.value_or(parts->second));
  if (!scales || scales->group != scale_block || (of_rows && scales->by_group)) return {};
  return Operand{.memory = parts->first,
                 .encoding = Encoding::block_scaled,
                 .scales = {scales->input},
                 .group = scale_block,
                 .scales_by_group = scales->by_group};
}

// x * ungroup(scale, 16, k) of e2m1 and e4m3fn.
std::optional<Operand> find_nvfp4(const Expr& e) {
  const auto parts = split_product(e, [](const Expr& x) { return is_input(x) && x.dtype() == e2m1; });
  if (!parts) return {};
  const std::optional<Scales> scales = scales_of(parts->second);
  if (!scales || scales->group != nvfp4_block || scales->input.dtype() != e4m3fn || scales->by_group) return {};
  return Operand{.memory = parts->first, .encoding = Encoding::nvfp4, .scales = {scales->input}, .group = nvfp4_block};
}

// (unpack4(b) - ungroup(zero, group, k)) * ungroup(scale, group, k); the zero point of i32 is transpose(unpack4(zero)).
std::optional<Operand> find_int4(const Expr& e) {
  const auto parts = split_product(e, [](const Expr& x) { return x.op() == Op::sub; });
  if (!parts) return {};
  const Expr &number = parts->first.operands()[0], &grouped_zero = parts->first.operands()[1];
  const std::optional<Expr> b = operand_of(number, Op::unpack4), point = operand_of(grouped_zero, Op::ungroup);
  const std::optional<Scales> scales = scales_of(parts->second);
  if (!b || !point || !scales || scales->by_group || grouped_zero->group != scales->group) return {};
  const bool packed = point->op() == Op::transpose && point->operands()[0].op() == Op::unpack4;
  const Expr zero = packed ? point->operands()[0].operands()[0] : *point;
  if (!is_input(*b) || !is_input(zero) || packed != (zero.dtype() == i32)) return {};
  return Operand{.memory = *b, .encoding = Encoding::int4, .scales = {scales->input, zero}, .group = scales->group};
}

// cast(type, x * (max / r)) * (r / max), with r = max(row_absmax(x), 2^-100) and exact quotients.
std::optional<Operand> find_quantised(const Expr& e) {
  const auto parts = split_product(e, [](const Expr& x) { return x.op() == Op::cast && is_fp8(x.dtype()) && x->saturate; });
  if (!parts || parts->second.op() != Op::div_exact) return {};
  const auto max = static_cast<float>(max_finite(parts->first.dtype()));
  const auto row = split_product(parts->first.operands()[0], is_input);
  if (!row || row->second.op() != Op::div_exact) return {};
  const Expr &r = parts->second.operands()[0], &again = row->second.operands()[1];
  if (!is_number(parts->second.operands()[1], max) || !is_number(row->second.operands()[0], max) || !same(r, again)) return {};
  if (r.op() != Op::max) return {};
  const Expr &x = r.operands()[0], &y = r.operands()[1];
  const Expr &absmax = x.op() == Op::constant ? y : x, &least = x.op() == Op::constant ? x : y;
  if (absmax.op() != Op::row_absmax || !same(absmax.operands()[0], row->first) || !is_number(least, min_quantised_absmax)) return {};
  return Operand{.memory = row->first, .prologue = Prologue::quantise, .rounded = parts->first.dtype()};
}

// What rsqrt(row_sum(squares) / k + epsilon) / scale takes.
struct Norm {
  Expr squares, scale;
  float epsilon;
};
std::optional<Norm> norm_of(const Expr& e, const Dim& k) {
  if (e.op() != Op::div || !is_input(e.operands()[1])) return {};
  const std::optional<Expr> sum = operand_of(e.operands()[0], Op::rsqrt);
  if (!sum || sum->op() != Op::add) return {};
  const bool number_first = sum->operands()[0].op() == Op::constant;
  const Expr &mean = sum->operands()[number_first ? 1 : 0], &epsilon = sum->operands()[number_first ? 0 : 1];
  if (epsilon.op() != Op::constant || mean.op() != Op::div || k.is_dynamic()) return {};
  const std::optional<Expr> squares = operand_of(mean.operands()[0], Op::row_sum);
  if (!squares || !is_input(*squares) || !is_number(mean.operands()[1], static_cast<float>(k.size()))) return {};
  return Norm{*squares, e.operands()[1], epsilon->value};
}

// cast(type, x * (rsqrt(row_sum(squares) / k + epsilon) / scale) * weight) * scale.
std::optional<Operand> find_normed(const Expr& e) {
  const auto parts = split_product(e, [](const Expr& x) { return x.op() == Op::cast && is_fp8(x.dtype()) && x->saturate; });
  if (!parts) return {};
  const std::vector<Expr> factors = factors_of(parts->first.operands()[0]);
  if (factors.size() != 3) return {};
  const auto of_rank = [&](std::size_t rank) {
    return std::ranges::find_if(factors, [&](const Expr& f) { return is_input(f) && f.shape().size() == rank; });
  };
  const auto x = of_rank(2), weight = of_rank(1), factor = std::ranges::find(factors, Op::div, &Expr::op);
  if (x == factors.end() || weight == factors.end() || factor == factors.end()) return {};
  const std::optional<Norm> norm = norm_of(*factor, x->shape().back());
  if (!norm || !same(norm->scale, parts->second)) return {};
  return Operand{.memory = *x,
                 .prologue = Prologue::norm,
                 .norm = {*weight, norm->squares, norm->scale},
                 .epsilon = norm->epsilon,
                 .rounded = parts->first.dtype()};
}

} // namespace

std::optional<Operand> find_operand(const Expr& e) {
  if (is_input(e)) return Operand{.memory = e};
  if (e.op() == Op::cast) { // weights are rounded to the type of A once they are decoded
    for (const auto find : {find_mx, find_nvfp4, find_int4})
      if (std::optional<Operand> found = find(e.operands()[0])) {
        found->rounded = e.dtype();
        return found;
      }
    return {};
  }
  for (const auto find : {find_mx, find_block_scaled, find_quantised, find_normed})
    if (const std::optional<Operand> found = find(e)) return found;
  return {};
}

bool reads_computed_rows(const Expr& product) {
  return info(product.op()).kind == OpKind::product && product.operands()[0].op() != Op::input;
}

ProductOperands operands_of(const Expr& product) {
  const std::span<const Expr> of = product.operands();
  ProductOperands result{{.memory = of[0]}, {.memory = of[1]}};
  Operand &a = result.a, &b = result.b;
  const auto scale = [](Operand& operand, Encoding encoding, std::int64_t group, const Expr& given) {
    operand.encoding = encoding;
    operand.group = group;
    operand.scales_by_group = given.op() == Op::transpose;
    operand.scales = {operand.scales_by_group ? given.operands()[0] : given};
  };
  switch (product.op()) {
  case Op::matmul_nt: break;
  case Op::matmul_nt_scaled:
    scale(a, Encoding::block_scaled, scale_block, of[2]);
    scale(b, Encoding::block_scaled, scale_block, of[3]);
    break;
  case Op::matmul_nt_mx_mx:
    scale(a, Encoding::mx, mx_block, of[2]);
    scale(b, Encoding::mx, mx_block, of[3]);
    break;
  case Op::matmul_nt_mx:
    if (of[2].dtype() == e8m0) scale(b, Encoding::mx, mx_block, of[2]);
    else scale(b, Encoding::nvfp4, nvfp4_block, of[2]);
    b.rounded = a.memory.dtype();
    break;
  case Op::matmul_nt_w4:
    scale(b, Encoding::int4, product->group, of[2]);
    b.scales.push_back(of[3]);
    b.rounded = a.memory.dtype();
    break;
  case Op::matmul_nt_quantised:
    a.prologue = Prologue::quantise;
    a.rounded = b.memory.dtype();
    break;
  case Op::matmul_nt_normed:
    a.prologue = Prologue::norm;
    a.norm = {of[2], of[3], of[4]};
    a.epsilon = of[5]->value;
    a.rounded = b.memory.dtype();
    break;
  default: throw InternalError(fmt::format("'{}' is no product", info(product.op()).name));
  }
  return result;
}

} // namespace kiln
