// Errata: code that a published fault of the hardware or of a compiler makes unsafe. docs/errata.md has the table.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/target/target_table.h"
#include "isa_checks/verdict/finding.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct Erratum {
  std::string_view rule; // the page that has source, chips and remedy: "ERR001"
  Severity severity = Severity::error;
  std::string what; // of this instruction
};

// The fault that this instruction meets on `target`, by its operands alone.
std::optional<Erratum> erratum_of(const Instruction& instruction, const TargetFacts& target);

// Whether a rule is about published faults: ERR of the hardware, CMP of compilers.
bool is_published_fault(std::string_view rule);

struct KernelAnalysis; // isa_checks/analysis/kernel_analysis.h

// Errors of the rules of faults of compilers (CMP), which look at more than one instruction.
std::vector<Finding> compiler_faults(const KernelAnalysis& kernel);
// Whether one of them can concern a kernel with this instruction: a spill to a lane, a write-back of cache lines.
bool concerns_compiler_fault(const Instruction& instruction);

} // namespace kiln::isa
