// The shape and element types of a matrix instruction, and the registers that its operands take.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include "isa_checks/exec/numbers/numeric.h"
#include <algorithm>
#include <array>

namespace kiln::exec {

enum class Element : std::uint8_t { f32, xf32, f64, f16, bf16, fp8, bf8, i8 };

// D = C + A B per block; A is m x k, B is k x n, C and D are m x n.
struct MatrixLayout {
  std::uint8_t m, n, k, blocks;
  Element a, b, accumulator;  // accumulator: f32, f64, or i8 for 32-bit integers
  bool sparse = false;        // SMFMAC: A holds two of every four adjacent in k, C is the destination
  bool named_formats = false; // f8f6f4: CBSZ and BLGP name the formats of A and B (matrix_scaled.cpp), not `a` and `b`

  int element_bits(Element e) const;
  int per_lane() const { return m * k * blocks / wave_size; } // elements of B that a lane holds; as many of A, adjacent in k, unless sparse
  int source_registers() const { return std::max(per_lane() * element_bits(b) / 32, 1); } // of B
  int a_registers() const { return sparse ? source_registers() / 2 : source_registers(); }
  int result_registers() const { return m * n * blocks / wave_size * (accumulator == Element::f64 ? 2 : 1); }
};

// The layout of a matrix instruction that has one.
MatrixLayout layout_of(std::string_view mnemonic);

// The formats that CBSZ and BLGP name.
inline constexpr int named_format_count = 5;
inline constexpr std::array<SmallFloat, named_format_count> named_formats{e4m3fn_format, e5m2_format, e2m3_format, e3m2_format,
                                                                          e2m1_format};
// Registers that A (0) or B (1) of one instruction takes.
int matrix_source_registers(const MatrixLayout& shape, const Fields& fields, int operand);
// Whether the scale words stand before the instruction (v_mfma_scale_*), as its operands 3 and 4.
inline bool has_scales(const Fields& fields) { return fields.size == 16; }

} // namespace kiln::exec
