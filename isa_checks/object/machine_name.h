// The names of AMD GPUs by the machine number of an ELF file, those included that the target table does not know.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::isa {

// "gfx1100" of 0x41; "machine 0x7f" for a number that is none. EF_AMDGPU_MACH of LLVM's AMDGPUUsage.
std::string machine_name(std::uint32_t machine);

} // namespace kiln::isa
