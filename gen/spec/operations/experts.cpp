// Experts: construction of the nodes that sort pairs of a token and an expert, and of products by expert.
#include "gen/error.h"
#include "gen/spec/expr.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

std::string experts_subject(Op op) { return fmt::format("operation '{}'", info(op).name); }
std::string experts_operand(Op op, std::string_view which) { return fmt::format("{}, operand {}", experts_subject(op), which); }

void require_list(Op op, std::string_view which, const Expr& e, DType type, const Shape& shape, std::string_view shape_text) {
  if (e.op() != Op::input)
    throw UserError(experts_operand(op, which), fmt::format("it is a '{}', not an input", info(e.op()).name),
                    "compute it in a kernel of its own: every workgroup reads all of it");
  if (e.dtype() != type || e.shape() != shape || e->layout != Layout::contiguous)
    throw UserError(experts_operand(op, which), fmt::format("it is {}{}", type_text(e), suffix(e->layout)),
                    fmt::format("give it {}{}, {}, contiguous", to_string(type), to_text(shape), shape_text));
}

// The pairs: [tokens, top].
const Shape& require_pairs(Op op, std::string_view which, const Shape& shape) {
  if (shape.size() != 2 || shape[1].is_dynamic())
    throw UserError(experts_operand(op, which), fmt::format("its shape is {}", to_text(shape)),
                    "give it [tokens, top], the latter a number: experts of a token");
  if (shape[1].size() < 1 || shape[1].size() > max_wave_ranks)
    throw UserError(experts_operand(op, which), fmt::format("a token has {} experts", shape[1].size()),
                    fmt::format("use 1 to {}", max_wave_ranks));
  return shape;
}

void require_experts(Op op, std::int64_t count) {
  if (count < 1 || count > max_experts)
    throw UserError(experts_subject(op), fmt::format("there are {} experts", count), fmt::format("use 1 to {}", max_experts));
}

Expr make_sort(Op op, Expr experts, std::int64_t count) {
  require_experts(op, count);
  if (experts.op() != Op::row_top && (experts.op() != Op::input || experts.dtype() != i32 || experts->layout != Layout::contiguous))
    throw UserError(experts_operand(op, "experts"), fmt::format("it is a '{}' of {}", info(experts.op()).name, type_text(experts)),
                    "give it a contiguous input of i32, or a row_top");
  Shape shape = require_pairs(op, "experts", experts.shape());
  if (op == Op::expert_offsets) shape = {count + 1};
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = {std::move(experts)}, .step = count});
}

// What a product with the matrices of experts is used by. The result has `shape` and the product's columns.
void require_product(Op op, const Expr& product, const Expr& order, const Expr& offsets) {
  if (info(product.op()).kind != OpKind::product || product.operands()[1].shape().size() != 3)
    throw UserError(experts_operand(op, "product"), fmt::format("it is a '{}' of {}", info(product.op()).name, type_text(product)),
                    "give it a product whose b is [experts, n, k]");
  const Shape &a = product.operands()[0].shape(), &b = product.operands()[1].shape();
  require_experts(op, b[0].size());
  const Shape& pairs = require_pairs(op, "order", order.shape());
  const std::string fact = "pairs in the order of their experts";
  require_list(op, "order", order, i32, {a[0], pairs[1]}, fact);
  if (a.size() == 3 && !same_size(a[1], pairs[1]))
    throw UserError(experts_operand(op, "product"), fmt::format("a is {}, and order {}", to_text(a), to_text(pairs)),
                    "give a one row per token, [tokens, k], or one a pair, [tokens, top, k]");
  require_list(op, "offsets", offsets, i32, {b[0].size() + 1}, "where the pairs of each expert begin, and where the last ones end");
}

} // namespace

Expr expert_order(Expr experts, std::int64_t count) { return make_sort(Op::expert_order, std::move(experts), count); }
Expr expert_offsets(Expr experts, std::int64_t count) { return make_sort(Op::expert_offsets, std::move(experts), count); }

Expr by_expert(Expr product, Expr order, Expr offsets) {
  require_product(Op::by_expert, product, order, offsets);
  Shape shape = {order.shape()[0], order.shape()[1], product.shape().back()};
  return Expr(Node{.op = Op::by_expert,
                   .dtype = f32,
                   .shape = std::move(shape),
                   .operands = {std::move(product), std::move(order), std::move(offsets)}});
}

Expr sum_of_experts(Expr product, Expr order, Expr offsets, Expr weights) {
  constexpr Op op = Op::sum_of_experts;
  require_product(op, product, order, offsets);
  require_list(op, "weights", weights, f32, order.shape(), "one for each pair");
  Shape shape = {order.shape()[0], product.shape().back()};
  return Expr(Node{.op = op,
                   .dtype = f32,
                   .shape = std::move(shape),
                   .operands = {std::move(product), std::move(order), std::move(offsets), std::move(weights)}});
}

} // namespace kiln
