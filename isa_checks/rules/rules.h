// The check of every rule, by id. Internal: rule.h has the table.
#pragma once
#include "isa_checks/kernel_analysis.h"
#include "isa_checks/rules/sink.h"

namespace kiln::isa::rules {

void spl001(const KernelAnalysis& kernel, FindingSink& sink);
void spl002(const KernelAnalysis& kernel, FindingSink& sink);
void spl005(const KernelAnalysis& kernel, FindingSink& sink);

} // namespace kiln::isa::rules
