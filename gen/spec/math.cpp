// Pointwise operations: type rules, broadcasting, and the C++ function of each.
#include "gen/spec/math.h"
#include "gen/error.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

bool wants_bool(OpKind kind, std::size_t operand) { return kind == OpKind::logic || (kind == OpKind::select && operand == 0); }

void require_operand_types(Op op, std::span<const Expr> operands) {
  const OpInfo& facts = info(op);
  if (!facts.is_pointwise()) throw InternalError(fmt::format("'{}' is no pointwise operation", facts.name));
  if (static_cast<int>(operands.size()) != facts.arity)
    throw UserError(fmt::format("operation '{}'", facts.name), fmt::format("it was given {} operands", operands.size()),
                    fmt::format("give it {}", facts.arity));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_bool = operands[i].dtype() == boolean;
    if (is_bool == wants_bool(facts.kind, i)) continue;
    throw UserError(fmt::format("operation '{}'", facts.name), fmt::format("operand {} is {}", i + 1, to_string(operands[i].dtype())),
                    is_bool ? "use cast(f32, ...) to compute with 0 and 1" : "compare it first, as in x > 0 or ne(x, 0)");
  }
}

// Those that are the same function of integers.
bool is_exact_on_integers(Op op) {
  return info(op).kind == OpKind::compare || op == Op::min || op == Op::max || op == Op::clamp || op == Op::select;
}

// The operation on i32 that an operator is, if its operands are.
std::optional<Op> integer_form(Op op) {
  switch (op) {
  case Op::add: return Op::add_i32;
  case Op::sub:
  case Op::neg: return Op::sub_i32;
  case Op::mul: return Op::mul_i32;
  default: return is_exact_on_integers(op) || info(op).kind == OpKind::integer ? std::optional(op) : std::nullopt;
  }
}

bool is_whole(const Expr& e) {
  return e.op() == Op::constant && (e.dtype() == i32 || (e->value == std::floor(e->value) && std::fabs(e->value) <= 0x1p32F));
}
bool is_i32(const Expr& e) { return e.dtype() == i32 && e.op() != Op::constant; }

// What numbers become beside others: i32 modulo 2^32, or f32.
Expr as_integer(const Expr& e) {
  if (e.op() != Op::constant) return e;
  const auto whole = e.dtype() == i32 ? e->whole : static_cast<std::int64_t>(e->value);
  const auto wrapped = static_cast<std::int32_t>(static_cast<std::uint32_t>(whole));
  return Expr(Node{.op = Op::constant, .dtype = i32, .value = static_cast<float>(wrapped), .whole = wrapped});
}
Expr as_number(const Expr& e) { return e.op() == Op::constant && e.dtype() == i32 ? constant(e->value) : e; }

Expr make(Op op, std::initializer_list<Expr> operands) { return pointwise(op, {operands.begin(), operands.size()}); }

} // namespace

bool takes_integers(const Expr& node) {
  const auto numbers = node.operands().subspan(node.op() == Op::select ? 1 : 0);
  return info(node.op()).kind == OpKind::integer ||
         (is_exact_on_integers(node.op()) && std::ranges::all_of(numbers, [](const Expr& e) { return e.dtype() == i32; }));
}

Expr pointwise(Op op, std::span<const Expr> operands) {
  require_operand_types(op, operands);
  // A negative number is a constant, not an operation, so that "-2" in text means what -2.0 means in C++.
  if (op == Op::neg && operands[0].op() == Op::constant)
    return operands[0].dtype() == i32 ? whole_number(-operands[0]->whole) : constant(-operands[0]->value);
  const auto numbers = operands.subspan(op == Op::select ? 1 : 0);
  const bool whole = std::ranges::all_of(numbers, [](const Expr& e) { return e.dtype() == i32 || is_whole(e); }) &&
                     (info(op).kind == OpKind::integer || std::ranges::any_of(numbers, is_i32));
  if (info(op).kind == OpKind::integer && !whole) {
    const auto other = std::ranges::find_if_not(numbers, [](const Expr& e) { return e.dtype() == i32 || is_whole(e); });
    throw UserError(fmt::format("operation '{}'", info(op).name),
                    fmt::format("operand {} is {}", other - numbers.begin() + 1,
                                other->op() == Op::constant ? fmt::format("the number {}", (*other)->value) : type_text(*other)),
                    "give it i32 and whole numbers: cast(i32, x) rounds to one");
  }
  const std::optional<Op> form = whole ? integer_form(op) : std::nullopt;
  std::vector<Expr> list;
  if (form == Op::sub_i32 && op == Op::neg) list.push_back(as_integer(constant(0)));
  for (const Expr& operand : operands) list.push_back(form ? as_integer(operand) : as_number(operand));
  const OpInfo& facts = info(form.value_or(op));
  Shape shape = list[0].shape();
  for (const Expr& operand : std::span(list).subspan(1)) shape = broadcast(facts.name, shape, operand.shape());
  const bool gives_bool = facts.kind == OpKind::compare || facts.kind == OpKind::logic;
  return Expr(Node{.op = form.value_or(op),
                   .dtype = gives_bool ? boolean
                            : form     ? i32
                                       : f32,
                   .shape = std::move(shape),
                   .operands = std::move(list)});
}

#define KILN_DEFINE_1(id)                                                                                                                  \
  Expr id(const Expr& x) { return make(Op::id, {x}); }
#define KILN_DEFINE_2(id)                                                                                                                  \
  Expr id(const Expr& x, const Expr& y) { return make(Op::id, {x, y}); }
#define KILN_DEFINE_3(id)                                                                                                                  \
  Expr id(const Expr& x, const Expr& y, const Expr& z) { return make(Op::id, {x, y, z}); }
#define KILN_OP(id, arity, ...) KILN_DEFINE_##arity(id)
#define KILN_INTEGER_OP(id, arity, ...) KILN_DEFINE_##arity(id)
#include "gen/spec/ops.def"

} // namespace kiln
