// Pointwise operations: type rules, broadcasting, and the C++ spelling of each.
#include "gen/spec/math.h"
#include "gen/error.h"
#include <fmt/format.h>

namespace kiln {
namespace {

bool wants_bool(OpKind kind, std::size_t operand) {
  return kind == OpKind::logic || (kind == OpKind::select && operand == 0);
}

void require_operand_types(Op op, std::span<const Expr> operands) {
  const OpInfo& facts = info(op);
  if (facts.reference == nullptr) throw InternalError(fmt::format("'{}' is no pointwise operation", facts.name));
  if (static_cast<int>(operands.size()) != facts.arity)
    throw UserError(fmt::format("operation '{}'", facts.name), fmt::format("it was given {} operands", operands.size()),
                    fmt::format("give it {}", facts.arity));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_bool = operands[i].dtype() == boolean;
    if (is_bool == wants_bool(facts.kind, i)) continue;
    throw UserError(fmt::format("operation '{}'", facts.name),
                    fmt::format("operand {} is {}", i + 1, name(operands[i].dtype())),
                    is_bool ? "use cast(f32, ...) to compute with 0 and 1" : "compare it first, as in x > 0 or ne(x, 0)");
  }
}

Expr make(Op op, std::initializer_list<Expr> operands) { return pointwise(op, {operands.begin(), operands.size()}); }

} // namespace

Expr pointwise(Op op, std::span<const Expr> operands) {
  require_operand_types(op, operands);
  const OpInfo& facts = info(op);
  // A negative number is a constant, not an operation, so that "-2" in text means what -2.0 means in C++.
  if (op == Op::neg && operands[0].op() == Op::constant) return constant(-operands[0]->value);
  Shape shape = operands[0].shape();
  for (const Expr& operand : operands.subspan(1)) shape = broadcast(facts.name, shape, operand.shape());
  const bool gives_bool = facts.kind == OpKind::compare || facts.kind == OpKind::logic;
  return Expr(std::make_shared<const Node>(Node{.op = op,
                                                .dtype = gives_bool ? boolean : f32,
                                                .shape = std::move(shape),
                                                .operands = {operands.begin(), operands.end()}}));
}

Expr operator-(const Expr& a) { return make(Op::neg, {a}); }
Expr operator+(const Expr& a, const Expr& b) { return make(Op::add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::sub, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::mul, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::div, {a, b}); }
Expr div_exact(const Expr& a, const Expr& b) { return make(Op::div_exact, {a, b}); }
Expr abs(const Expr& x) { return make(Op::abs, {x}); }
Expr min(const Expr& a, const Expr& b) { return make(Op::min, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return make(Op::max, {a, b}); }
Expr clamp(const Expr& x, const Expr& low, const Expr& high) { return make(Op::clamp, {x, low, high}); }
Expr fma(const Expr& a, const Expr& b, const Expr& c) { return make(Op::fma, {a, b, c}); }
Expr select(const Expr& condition, const Expr& a, const Expr& b) { return make(Op::select, {condition, a, b}); }

Expr operator<(const Expr& a, const Expr& b) { return make(Op::lt, {a, b}); }
Expr operator<=(const Expr& a, const Expr& b) { return make(Op::le, {a, b}); }
Expr operator>(const Expr& a, const Expr& b) { return make(Op::gt, {a, b}); }
Expr operator>=(const Expr& a, const Expr& b) { return make(Op::ge, {a, b}); }
Expr eq(const Expr& a, const Expr& b) { return make(Op::eq, {a, b}); }
Expr ne(const Expr& a, const Expr& b) { return make(Op::ne, {a, b}); }
Expr logical_and(const Expr& a, const Expr& b) { return make(Op::logical_and, {a, b}); }
Expr logical_or(const Expr& a, const Expr& b) { return make(Op::logical_or, {a, b}); }
Expr logical_not(const Expr& a) { return make(Op::logical_not, {a}); }

Expr exp(const Expr& x) { return make(Op::exp, {x}); }
Expr exp2(const Expr& x) { return make(Op::exp2, {x}); }
Expr log(const Expr& x) { return make(Op::log, {x}); }
Expr log2(const Expr& x) { return make(Op::log2, {x}); }
Expr sqrt(const Expr& x) { return make(Op::sqrt, {x}); }
Expr rsqrt(const Expr& x) { return make(Op::rsqrt, {x}); }
Expr rcp(const Expr& x) { return make(Op::rcp, {x}); }
Expr tanh(const Expr& x) { return make(Op::tanh, {x}); }
Expr erf(const Expr& x) { return make(Op::erf, {x}); }
Expr sigmoid(const Expr& x) { return make(Op::sigmoid, {x}); }
Expr silu(const Expr& x) { return make(Op::silu, {x}); }
Expr gelu(const Expr& x) { return make(Op::gelu, {x}); }
Expr gelu_tanh(const Expr& x) { return make(Op::gelu_tanh, {x}); }
Expr relu(const Expr& x) { return make(Op::relu, {x}); }
Expr softplus(const Expr& x) { return make(Op::softplus, {x}); }
Expr sin(const Expr& x) { return make(Op::sin, {x}); }
Expr cos(const Expr& x) { return make(Op::cos, {x}); }
Expr pow(const Expr& a, const Expr& b) { return make(Op::pow, {a, b}); }
Expr round(const Expr& x) { return make(Op::round, {x}); }
Expr floor(const Expr& x) { return make(Op::floor, {x}); }

} // namespace kiln
