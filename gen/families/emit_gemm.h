// Emission of Family::skinny_gemm; called by emit_source.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/families/schedule.h"

namespace kiln {

KernelSource emit_gemm(const Plan& plan, const Schedule& schedule, const Target& target);

} // namespace kiln
