// Matrix instructions: the shape and element types of an MFMA, and where each element lies in the registers.
#pragma once
#include "isa_checks/exec/inst.h"

namespace kiln::exec {

enum class Element : std::uint8_t { f32, f64, f16, bf16, fp8, bf8, i8 };

// D = C + A B per block; A is m x k, B is k x n, C and D are m x n.
struct MatrixShape {
  std::uint8_t m, n, k, blocks;
  Element a, b, accumulator; // accumulator: f32, f64, or i8 for 32-bit integers

  int element_bits(Element e) const;
  int per_lane() const { return m * k * blocks / 64; } // elements of A that a lane holds, adjacent in k; as many of B
  int source_registers() const { return std::max(per_lane() * element_bits(a) / 32, 1); }
  int result_registers() const { return m * n * blocks / 64 * (accumulator == Element::f64 ? 2 : 1); }
};

} // namespace kiln::exec
