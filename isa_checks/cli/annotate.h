// Annotations: what is known about single instructions of a kernel, for a listing beside the code.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/finding.h"
#include <string>
#include <vector>

namespace kiln::isa::cli {

// "vmcnt(2): of 5 outstanding waits for 3: global_load_dwordx4 at 0x140 (and 2 more), 12 instructions ago"
std::string explain_wait(const WaitPoint& point, const Program& program);

// "3", "1-4", or "" for none.
std::string range_text(int least, int most);

// Findings by the instruction that they are about; those of the whole kernel are last.
std::vector<std::vector<const Finding*>> findings_by_instruction(const Program& program, const std::vector<Finding>& findings);

// Wait points by instruction.
std::vector<std::vector<const WaitPoint*>> waits_by_instruction(const KernelAnalysis& analysis);

} // namespace kiln::isa::cli
