// TargetFacts: a row of machine/arch.h by name, or by the number that code objects have.
#pragma once
#include "machine/arch.h"
#include <cstdint>
#include <string_view>

namespace kiln::isa {

using machine::Fp8Format, machine::Generation;
using TargetFacts = machine::Arch;

const TargetFacts* find_target(std::string_view arch);            // null when unknown
const TargetFacts* find_target_by_machine(std::uint32_t machine); // by EF_AMDGPU_MACH; null when unknown
const TargetFacts& target_facts(std::string_view arch);           // throws UnknownArch naming the known ones
std::string_view known_target_names();                            // "gfx90a, gfx942, gfx950", for messages

} // namespace kiln::isa
