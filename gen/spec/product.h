// Operand: what the numbers that a matrix product multiplies are made of. docs/guide.md lists the expressions.
#pragma once
#include "gen/spec/expr.h"
#include "templates/gemm_config.h"
#include <optional>
#include <vector>

namespace kiln {

// What rows of A go through before they are multiplied.
enum class Prologue : std::uint8_t { none, quantise, norm };

// Rows are quantised by their largest magnitude, or by this number where that is larger. As templates/gemm/largest_of_rows.h.
inline constexpr float min_quantised_absmax = 0x1p-100F;

struct Operand {
  Expr memory; // an input: [m, k], [n, k], or [n, k/2] of int4; of experts with one dimension more
  Encoding encoding = Encoding::plain;
  std::vector<Expr> scales = {}; // inputs: the scale; of int4 the scale and the zero point
  std::int64_t group = 0;        // elements of k with one scale; 0 without
  bool scales_by_group = false;  // the scale lies as [groups, m]
  Prologue prologue = Prologue::none;
  std::vector<Expr> norm = {}; // inputs: weight, squares and scale
  float epsilon = 0;           // of a norm
  DType rounded = f32;         // what decoded weights, or prepared rows, are rounded to; f32: nothing

  int bits() const { return encoding == Encoding::int4 ? 4 : size_bits(memory.dtype()); }      // of an element
  bool packed_zeros() const { return encoding == Encoding::int4 && scales[1].dtype() == i32; } // 8 a word, [groups, rows / 8]
  bool preshuffled() const { return memory->layout == Layout::preshuffled; }
};

struct ProductOperands {
  Operand a, b;
};

// What an expression is as an operand. Nothing for one that no kernel multiplies by.
std::optional<Operand> find_operand(const Expr& e);

// Whether rows of a are computed, from another product. They are in memory when a phase of the launch has left them there.
bool reads_computed_rows(const Expr& product);

// The operands of a node of OpKind::product.
ProductOperands operands_of(const Expr& product);

} // namespace kiln
