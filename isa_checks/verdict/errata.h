// Errata: instructions that a published fault of the hardware makes unsafe, whatever stands around them. docs/errata.md has the table.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/target_table.h"
#include "isa_checks/verdict/finding.h"
#include <optional>
#include <string>
#include <string_view>

namespace kiln::isa {

struct Erratum {
  std::string_view rule; // the page that has source, chips and remedy: "ERR001"
  Severity severity = Severity::error;
  std::string what; // of this instruction
};

// The fault that this instruction meets on `target`, by its operands alone.
std::optional<Erratum> erratum_of(const Instruction& instruction, const TargetFacts& target);

} // namespace kiln::isa
