// MatrixShape: what one matrix instruction computes and how long it occupies the matrix unit, from its mnemonic.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/target_table.h"
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::isa {

struct MatrixShape {
  int m = 0, n = 0, k = 0, blocks = 1;
  bool sparse = false;            // v_smfmac: k counts the zeros that 2:4 sparsity leaves out
  bool xdl = true;                // false: f32 and f64, which share the vector ALU's multipliers
  std::string_view result, input; // "f32", "f16"; points into the mnemonic
  int cycles = 0;                 // clocks that the matrix unit is busy; a pass is 4 of them
  int passes() const { return cycles / 4; }
  std::int64_t operations() const { return 2LL * m * n * k * blocks; } // multiplications and additions
};

// Cycles are LLVM's passes times 4 (SISchedule.td), which agree with AMD's matrix calculator. Nothing for other
// instructions. Written for gfx90a, gfx942 and gfx950.
std::optional<MatrixShape> matrix_shape(const Instruction& instruction, const TargetFacts& target);

// The instruction of twice the k that takes the same time on gfx950, where this one is gfx942-shaped; "" otherwise.
std::string_view doubled_shape(std::string_view mnemonic, const TargetFacts& target);

} // namespace kiln::isa
