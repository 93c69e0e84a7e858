// MatrixShape: what one matrix instruction computes and how long it occupies the matrix unit, from its mnemonic.
#pragma once
#include "isa_checks/target/target_table.h"
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::isa {

inline constexpr int clocks_per_pass = 4;

struct MatrixShape {
  int m = 0, n = 0, k = 0, blocks = 1;
  bool sparse = false;            // v_smfmac: k counts the zeros that 2:4 sparsity leaves out
  bool xdl = true;                // false: f32 and f64, which have waits of their own (hazards.h)
  std::string_view result, input; // "f32", "f16"
  std::string_view second_input;  // of B, where it is another one
  int passes = 0;                 // that the matrix unit is busy
  int cycles() const { return clocks_per_pass * passes; }
  std::int64_t operations() const { return 2LL * m * n * k * blocks; } // multiplications and additions
};

// The formats of A and B that CBSZ and BLGP of v_mfma_*_f8f6f4 name: 0 and 1 have 8 bits per element, 2 and 3 six, 4 four.
struct OperandFormats {
  int a = 0, b = 0;
};

// Nothing for other instructions. Passes are LLVM's (SISchedule.td). Those of CDNA3 were compared with the "execution cycles"
// of AMD's matrix instruction calculator, those of CDNA4 with AMD's blog "Matrix Core Programming on CDNA3 and CDNA4".
std::optional<MatrixShape> matrix_shape(std::string_view mnemonic, const TargetFacts& target, OperandFormats formats = {});

// What the name alone says: all but the passes.
std::optional<MatrixShape> named_matrix_shape(std::string_view mnemonic);

// The instruction of twice the k that takes the same time, when the target has one (TargetFacts::doubled_mfma); "" otherwise.
std::string_view doubled_shape(std::string_view mnemonic, const TargetFacts& target);

} // namespace kiln::isa
