// Sanitisers of register operands: what an instruction reads or overwrites must have arrived.
#pragma once
#include "isa_checks/exec/machine/wave.h"

namespace kiln::exec {

// Reports registers that the instruction reads or writes while a load that fills them is in flight.
void check_waits(Wave& wave, const Inst& inst);

// Fills inst's register ranges from its operands.
void set_ranges(Inst& inst);

} // namespace kiln::exec
