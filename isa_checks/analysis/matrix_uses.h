// MatrixAnalysis: the matrix instructions of a kernel, how far apart those are that depend on one another, and the wait
// states that s_nop spends between a result and its reader.
#pragma once
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa {

struct MatrixUse {
  std::size_t instruction = 0;
  std::size_t loop = nothing; // the innermost
  MatrixShape shape;
  RegisterRange result;
  // Instructions between this and the nearest one that accumulates onto its result (the same registers as C); nothing
  // when none is within reach. 0 is back to back.
  std::optional<int> next_in_chain;
  // Likewise for the nearest that reads it otherwise: as A or B, or in another unit.
  std::optional<int> next_reader;
  std::size_t reader = nothing;
  int states_needed = 0;      // wait states that the reader needs after this instruction
  int nop_states = 0;         // of these, spent in s_nop between the two
  std::size_t states_end = 0; // the instruction behind those states, at most the reader
};

struct MatrixAnalysis {
  std::vector<MatrixUse> uses; // by address
  const MatrixUse* find(std::size_t instruction) const;
};

MatrixAnalysis analyse_matrix(const Program& program, const std::vector<Operands>& operands, const TargetFacts& target);

std::string to_text(const MatrixAnalysis& matrix, const Program& program);
std::string to_json(const MatrixAnalysis& matrix, const Program& program);

} // namespace kiln::isa
