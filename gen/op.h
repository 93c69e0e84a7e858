// Op: the operations an Expr can hold, and the registry that says everything about each of them in one line.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

enum class OpKind : std::uint8_t { leaf, pointwise, compare, logic, select, cast, row_reduce, group_reduce, ungroup };

// Pointwise operations come from gen/ops.def, one line an operation; the rest is structural and fixed.
enum class Op : std::uint8_t {
  input, scalar, constant, cast, ungroup,
  row_sum, row_mean, row_max, row_min, row_absmax,
  group_sum, group_mean, group_max, group_min, group_absmax,
#define KILN_OP(id, ...) id,
#include "gen/ops.def"
#undef KILN_OP
};

struct OpInfo {
  std::string_view name; // as in the text form
  int arity;
  OpKind kind;
  // Device expression with {0} {1} {2} for the operands, each an f32 vector or scalar (a bool mask for logic and the
  // first operand of select): "{0} + {1}", "exp({0})". Empty for structural operations.
  std::string_view device;
  float (*reference)(float, float, float); // nullptr for structural operations; bools are 0 and 1
  double ulp;      // documented bound of the device result against the exact one, in units in the last place of f32
  int cost;        // vector instructions an element, roughly: decides hold or recompute
  std::string_view note; // where the bound comes from, and what happens at the edges
};
const OpInfo& info(Op op);
std::optional<Op> parse_op(std::string_view name);

} // namespace kiln
