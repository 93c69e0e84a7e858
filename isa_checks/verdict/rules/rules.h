// The check of every rule: void mem001(const KernelAnalysis& kernel, FindingSink& sink), and so on, one for each page of docs/rules.
#pragma once
#include "isa_checks/analysis/kernel_analysis.h"
#include "isa_checks/verdict/rules/sink.h"

namespace kiln::isa::rules {

#define KILN_RULE(name) void name(const KernelAnalysis& kernel, FindingSink& sink);
#include "rule_names.inc"
#undef KILN_RULE

} // namespace kiln::isa::rules
