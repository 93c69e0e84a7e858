// Source lines of defects, from the DWARF line table of the code object, when it has one.
#pragma once
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/object/code_object.h"
#include <vector>

namespace kiln::exec {

// Fills Defect::source ("gemm.hip:42") where the line table of a linked code object says where an instruction came from.
void add_source_lines(const isa::CodeObject& object, const isa::Kernel& kernel, std::vector<Defect>& defects);

} // namespace kiln::exec
