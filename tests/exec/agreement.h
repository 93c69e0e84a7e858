// What is said of a kernel without running it, against what an execution counted: waits and LDS bank passes.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/object/code_object.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing {

struct WaitAgreement {
  int compared = 0, exact = 0;    // counters of waits that were executed; those for which the analysis gives one number
  std::vector<std::string> wrong; // one line for each disagreement
  void add(const WaitAgreement& other);
};

// The operations outstanding before each wait lie between the least and the most that the analysis says, vmcnt and lgkmcnt
// alike. Nothing is compared of an analysis that is approximate or incomplete. `run` must have been measured.
WaitAgreement compare_waits(const isa::Program& program, const isa::WaitAnalysis& waits, const exec::ExecResult& run);
WaitAgreement compare_waits(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run);

struct BankAgreement {
  int compared = 0;               // LDS instructions that were executed, and whose addresses the analysis knows
  std::vector<std::string> wrong; // one line for each disagreement
};

// The passes that LDS instructions need, and would need without conflicts, are what the analysis says, each time they run.
BankAgreement compare_banks(const isa::KernelAnalysis& kernel, const exec::ExecResult& run);

// The first line that waits or bank passes of `kernel` disagree on; nothing when they agree, and for a run without a wave.
std::optional<std::string> first_disagreement(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run);

} // namespace kiln::testing
