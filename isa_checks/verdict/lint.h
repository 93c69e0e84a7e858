// lint: runs rules over the analysis of one kernel.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/finding.h"
#include "isa_checks/verdict/rule.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln::isa {

// Registers that hand-written parts of a kernel keep for themselves (PIN001).
struct PinnedRegisters {
  int first_vgpr = 0;                    // this one and all above it
  std::vector<std::string> allowed = {}; // beginnings of mnemonics that may write them: "v_mfma_", "ds_read_"
};

struct LintOptions {
  std::vector<std::string> only = {};    // ids; when not empty, these rules and no others run
  std::vector<std::string> with = {};    // ids that run besides those that are on
  std::vector<std::string> without = {}; // ids that do not run
  bool all = false;                      // every rule runs, `without` excepted
  std::optional<PinnedRegisters> pinned = {};
  Severity least = Severity::info; // findings below this are left out
};

// Severest first, then by address; of one kernel. Throws Error for an id that no rule has.
std::vector<Finding> lint(const KernelAnalysis& kernel, const LintOptions& options = {});

} // namespace kiln::isa
