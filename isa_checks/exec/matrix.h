// Matrix instructions: the shape and element types of an MFMA, and where each element lies in the registers.
#pragma once
#include "isa_checks/exec/inst.h"

namespace kiln::exec {

enum class Element : std::uint8_t { f32, f64, f16, bf16, fp8, bf8, i8 };

// D = C + A B per block; A is m x k, B is k x n, C and D are m x n.
struct MatrixShape {
  std::uint8_t m, n, k, blocks;
  Element a, b, accumulator; // accumulator: f32, f64, or i8 for 32-bit integers
  bool sparse = false; // SMFMAC: A holds two of every four adjacent in k, C is the destination

  int element_bits(Element e) const;
  int per_lane() const { return m * k * blocks / 64; } // elements of B that a lane holds; as many of A, adjacent in k, unless sparse
  int source_registers() const { return std::max(per_lane() * element_bits(b) / 32, 1); } // of B
  int a_registers() const { return sparse ? source_registers() / 2 : source_registers(); }
  int result_registers() const { return m * n * blocks / 64 * (accumulator == Element::f64 ? 2 : 1); }
};

} // namespace kiln::exec
