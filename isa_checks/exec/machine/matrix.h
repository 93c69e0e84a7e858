// Matrix instructions: the shape and element types of an MFMA, and where each element lies in the registers.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <algorithm>
#include <vector>

namespace kiln::exec {

enum class Element : std::uint8_t { f32, xf32, f64, f16, bf16, fp8, bf8, i8 };

// D = C + A B per block; A is m x k, B is k x n, C and D are m x n.
struct MatrixShape {
  std::uint8_t m, n, k, blocks;
  Element a, b, accumulator; // accumulator: f32, f64, or i8 for 32-bit integers
  bool sparse = false;       // SMFMAC: A holds two of every four adjacent in k, C is the destination
  bool named_formats = false; // f8f6f4: CBSZ and BLGP name the formats of A and B (matrix_scaled.cpp), not `a` and `b`

  int element_bits(Element e) const;
  int per_lane() const { return m * k * blocks / 64; } // elements of B that a lane holds; as many of A, adjacent in k, unless sparse
  int source_registers() const { return std::max(per_lane() * element_bits(b) / 32, 1); } // of B
  int a_registers() const { return sparse ? source_registers() / 2 : source_registers(); }
  int result_registers() const { return m * n * blocks / 64 * (accumulator == Element::f64 ? 2 : 1); }
};

// Registers of 32 elements of the format that CBSZ or BLGP names.
int named_format_registers(int format);
// Registers that A (0) or B (1) of one instruction takes.
int matrix_source_registers(const MatrixShape& shape, const Fields& fields, int operand);
// Whether the scale words stand before the instruction (v_mfma_scale_*), as its operands 3 and 4.
inline bool has_scales(const Fields& fields) { return fields.size == 16; }

struct ResultPlace {
  int lane, reg; // reg counts results, of 32 or 64 bits
};
// Where element (i, j) of a block of C and D lies.
ResultPlace result_place(const MatrixShape& s, int block, int i, int j);
// The value of C there; `c` is null when C is a constant.
double addend(const MatrixShape& s, const Inst& inst, const std::uint32_t* c, ResultPlace at);
// Rounds once and puts the bits into `result`, 64 words a register.
void store_result(const MatrixShape& s, std::vector<std::uint32_t>& result, ResultPlace at, double value);

} // namespace kiln::exec
