// HazardTraits of decoded instructions: which half of which hazard each can be.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/target/hazards.h"

namespace kiln::isa {

HazardTraits hazard_traits(const Instruction& instruction, const Operands& operands, const RegisterUse& use, const TargetFacts& target);

} // namespace kiln::isa
