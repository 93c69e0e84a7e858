// Op: the operations of gen/spec/ops.def, and the registry that says everything about each of them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln {

enum class OpKind : std::uint8_t {
  leaf,
  pointwise,
  integer, // pointwise on i32, exact
  compare,
  logic,
  select,
  cast,
  row_reduce,
  group_reduce,
  ungroup,
  product,
  operand, // of a product alone: unpack4, ungroup_rows
  columns,
  position, // the index of an element
  view,     // elements of other places: gather, tile, repeat, partner
  scatter,
  scaled,    // by the power of two that an e8m0 is
  scores,    // of attention: products of queries and keys
  attention, // reductions of scores: attention, log_sum_exp
  transpose, // another order of dimensions: heads_first, transpose
  rank,      // the columns of the largest elements of a row
  pick,      // the elements of those columns
  experts,   // of a product with the matrices of several experts: by_expert, sum_of_experts
  sort,      // of pairs of a token and an expert, by expert
  scan,      // of a row up to each column
  stack      // of values along a second dimension
};

enum class Op : std::uint8_t {
#define KILN_STRUCTURAL_OP(id, ...) id,
#define KILN_OP(id, ...) id,
#define KILN_INTEGER_OP(id, ...) id,
#include "gen/spec/ops.def"
};

// How a function of one operand bends: what its range over an interval of operands follows from.
enum class Curve : std::uint8_t {
  corners, // monotonic in every operand while the others stay: the extremes are at the corners (add, mul, min, ...)
  rising,
  falling,
  turning,  // falling below `curve_at`, rising above
  periodic, // slope within [-1, 1], values within [-1, 1]
  pole,     // falling on both sides of 0, infinite at 0
};

// |device result - exact result| <= (ulp + ulp_per_x * |x|) * ulp(exact) + abs_error + abs_per_x * |x|, where x is the first
// operand and ulp(exact) is the distance of f32 numbers at the exact result.
struct Accuracy {
  double ulp = 0, ulp_per_x = 0, abs_error = 0, abs_per_x = 0;
  Curve curve = Curve::corners;
  double curve_at = 0;
  bool from_zero = false;        // NaN for negative operands
  bool flushes_operands = false; // denormal operands may be taken as 0

  template <typename T> constexpr Accuracy with(T Accuracy::* member, T value) const {
    Accuracy r = *this;
    r.*member = value;
    return r;
  }
  constexpr Accuracy per_x(double slope) const { return with(&Accuracy::ulp_per_x, slope); }
  constexpr Accuracy absolute(double bound) const { return with(&Accuracy::abs_error, bound); }
  constexpr Accuracy absolute_per_x(double slope) const { return with(&Accuracy::abs_per_x, slope); }
  constexpr Accuracy rising() const { return with(&Accuracy::curve, Curve::rising); }
  constexpr Accuracy falling() const { return with(&Accuracy::curve, Curve::falling); }
  constexpr Accuracy periodic() const { return with(&Accuracy::curve, Curve::periodic); }
  constexpr Accuracy pole_at_zero() const { return with(&Accuracy::curve, Curve::pole); }
  constexpr Accuracy turns_at(double x) const { return with(&Accuracy::curve, Curve::turning).with(&Accuracy::curve_at, x); }
  constexpr Accuracy from(int) const { return with(&Accuracy::from_zero, true); }
  constexpr Accuracy flushes() const { return with(&Accuracy::flushes_operands, true); }
};

struct OpInfo {
  std::string_view name; // as in the text form
  int arity;
  OpKind kind;
  // Device expression with {0} {1} {2} for the operands, each an f32 vector or scalar (a bool mask for logic and the
  // first operand of select): "{0} + {1}", "exp({0})". Empty for structural operations.
  std::string_view device;
  float (*reference)(float, float, float); // nullptr for structural operations; bools are 0 and 1
  double (*exact)(double, double, double); // the same function in f64, for error bounds
  Accuracy accuracy;                       // documented bound of the device result against the exact one
  int cost;                                // vector instruction slots an element, roughly: decides hold or recompute
  std::string_view note;                   // where the bound comes from, and what happens at the edges
  std::uint32_t (*integer)(std::uint32_t, std::uint32_t, std::uint32_t) = nullptr; // of integer operations, in place of the others
  bool is_pointwise() const { return reference != nullptr || integer != nullptr; }
};
const OpInfo& info(Op op);
std::optional<Op> parse_op(std::string_view name);
std::span<const Op> all_ops();       // in the order of gen/spec/ops.def
std::span<const Op> pointwise_ops(); // those of KILN_OP
std::span<const Op> integer_ops();   // those of KILN_INTEGER_OP
bool is_reduction(Op op);            // of a row or of a group
Op row_form(Op reduction);           // row_sum of row_sum and of group_sum, and so on
} // namespace kiln
