// LDS bank passes of one access, from the real addresses, by the architecture's rules.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"

namespace kiln::exec {

// Adds bytes, bank passes needed, and passes without conflicts, to the counters of the instruction being executed.
void count_banks(Wave& wave, const LaneAccess& op, const WaveAddresses& at);

} // namespace kiln::exec
