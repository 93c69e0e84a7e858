// What the two files of matrix instructions share: the places of C and D in the registers.
#pragma once
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/exec/machine/wave.h"
#include <vector>

namespace kiln::exec {

struct ResultPlace {
  int lane, reg; // reg counts results, of 32 or 64 bits
};
// The place of element (i, j) of a block of C and D.
ResultPlace result_place(const MatrixLayout& s, int block, int i, int j);
// The value of C there; `c` is null when C is a constant.
double addend(const MatrixLayout& s, const Inst& inst, const std::uint32_t* c, ResultPlace at);
// Rounds once and puts the bits into `result`, 64 words per register.
void store_result(const MatrixLayout& s, std::vector<std::uint32_t>& result, ResultPlace at, double value);

// Those whose operands each have a format of their own (matrix_scaled.cpp).
void mfma_formats(Wave& wave, const Inst& inst);

} // namespace kiln::exec
