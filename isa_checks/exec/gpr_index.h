// VGPR index mode (s_set_gpr_idx_*): vector registers of VALU operands are counted from M0.
#pragma once
#include "isa_checks/exec/inst.h"
#include <vector>

namespace kiln::exec {

// Makes the program's VALU instructions look at the mode when they run. A program that never turns the mode on stays as it is.
void prepare_index_mode(std::vector<Inst>& program);

} // namespace kiln::exec
