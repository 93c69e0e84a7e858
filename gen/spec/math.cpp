// Pointwise operations: type rules, broadcasting, and the C++ function of each.
#include "gen/spec/math.h"
#include "gen/error.h"
#include <fmt/format.h>

namespace kiln {
namespace {

bool wants_bool(OpKind kind, std::size_t operand) { return kind == OpKind::logic || (kind == OpKind::select && operand == 0); }

void require_operand_types(Op op, std::span<const Expr> operands) {
  const OpInfo& facts = info(op);
  if (facts.reference == nullptr) throw InternalError(fmt::format("'{}' is no pointwise operation", facts.name));
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
  std::vector<Expr> list(operands.begin(), operands.end());
  return Expr(Node{.op = op, .dtype = gives_bool ? boolean : f32, .shape = std::move(shape), .operands = std::move(list)});
}

#define KILN_DEFINE_1(id)                                                                                                                  \
  Expr id(const Expr& x) { return make(Op::id, {x}); }
#define KILN_DEFINE_2(id)                                                                                                                  \
  Expr id(const Expr& x, const Expr& y) { return make(Op::id, {x, y}); }
#define KILN_DEFINE_3(id)                                                                                                                  \
  Expr id(const Expr& x, const Expr& y, const Expr& z) { return make(Op::id, {x, y, z}); }
#define KILN_OP(id, arity, ...) KILN_DEFINE_##arity(id)
#include "gen/spec/ops.def"

} // namespace kiln
