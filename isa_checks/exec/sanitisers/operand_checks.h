// Sanitisers of register operands: what an instruction reads or overwrites must have arrived.
#pragma once
#include "isa_checks/exec/machine/wave.h"

namespace kiln::exec {

// Reports registers that the instruction reads or writes while a load that fills them is in flight.
void check_waits(Wave& wave, const Inst& inst);

// LDS operations that have no address register.
bool addressed_by_m0(std::string_view name);

// Fills inst's registers, from those that LLVM names, and says whether it may be run again.
void set_use(Inst& inst, const isa::RegisterUse& use);

} // namespace kiln::exec
