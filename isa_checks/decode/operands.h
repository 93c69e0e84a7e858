// Operands: an instruction's operands from its printed text. Which of LLVM's operands is an offset or a format, its public headers do not
// say: getNamedOperandIdx is not exported. Registers that are read and written come from LLVM: disassembler.cpp.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/matrix_shape.h"
#include "isa_checks/target/registers.h"
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace kiln::isa {

struct Operand {
  enum class Kind : std::uint8_t { registers, number, off, other } kind = Kind::other;
  RegisterRange registers;  // of Kind::registers
  std::uint64_t number = 0; // of Kind::number: an integer, or the bits of an f32
  bool modified = false;    // negated, absolute or sign-extended
  bool negated = false;
  std::string_view text; // without what modifies it; points into the instruction
  bool is(Kind wanted) const { return kind == wanted; }
};

// At most six operands; none of these targets' instructions has more.
struct Operands {
  std::array<Operand, 6> list;
  std::uint8_t count = 0;
  std::string_view modifiers; // what follows the last operand: "offset:16 sc0"
  std::span<const Operand> all() const { return {list.data(), count}; }
  const Operand& operator[](std::size_t i) const { return list[i]; }

  bool has(std::string_view modifier) const; // as a whole word: "sc0", "lds"
  // The number behind "NAME:": value("offset") of "offset:16" is 16. Nothing when it is not there, or no number.
  std::optional<std::int64_t> value(std::string_view name) const;
};

// Valid as long as the instruction.
Operands operands_of(const Instruction& instruction);

// As of the mnemonic (target/matrix_shape.h), with the operand formats that the modifiers name.
std::optional<MatrixShape> matrix_shape(const Instruction& instruction, const Operands& operands, const TargetFacts& target);

} // namespace kiln::isa
