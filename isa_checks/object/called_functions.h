// Called functions: the device functions beside the kernels of a code object that its kernels reach by calls whose target the code states.
#pragma once
#include "isa_checks/object/code_object.h"
#include <vector>

namespace kiln::isa {

// A function is reached when a kernel, or a function that is reached, makes its address as LLVM does before s_swappc_b64 and s_setpc_b64:
// s_getpc_b64, s_add_u32 and s_addc_u32 in a row. Addresses out of tables are not followed. Each function once, by address, with descriptor
// and metadata of the first kernel that reaches it: registers, LDS and workgroup are its caller's. Relocatable objects have none: their
// addresses are relocations.
std::vector<Kernel> called_functions(const CodeObject& object);

} // namespace kiln::isa
