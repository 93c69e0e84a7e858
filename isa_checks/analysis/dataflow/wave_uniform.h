// WaveUniform: which blocks all waves of a workgroup execute alike, because every branch on the way to them goes the same way in all.
#pragma once
#include "isa_checks/analysis/dataflow/register_set.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <vector>

namespace kiln::isa {

// By block. A register may differ between waves when it is made of the work-item id, of a clock or hardware register, of what an atomic
// returned, or was written where waves part or lanes are off. Branches on such a register part the waves, up to where all their ways
// meet again. A branch forward over lanes that are off (s_cbranch_execz) does not count: who takes part is said by the active lanes.
// Kernel arguments, workgroup ids and what is loaded from the same address are the same in all waves of a workgroup.
std::vector<bool> blocks_of_all_waves(const Program& program);

} // namespace kiln::isa
