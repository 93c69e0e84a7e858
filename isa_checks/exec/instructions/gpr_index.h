// Registers counted from M0: VGPR index mode (s_set_gpr_idx_*) and s_movrel*.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <vector>

namespace kiln::exec {

// Makes the program's VALU instructions look at the mode when they run; a program that never turns the mode on stays as it is.
// What such an instruction and s_movrel* read and write is known only then.
void prepare_index_mode(std::vector<Inst>& program);

} // namespace kiln::exec
