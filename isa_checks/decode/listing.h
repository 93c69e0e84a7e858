// listing: a program as assembly text, with labels, addresses and loops.
#pragma once
#include "isa_checks/decode/program.h"
#include <string>

namespace kiln::isa {

// One instruction a line: the text with the branch target as a label, then a comment with the address. Blocks of loops
// are indented by their depth, and headers say which loop they begin. Assembling the text gives the same bytes again,
// except after a branch that leaves the kernel, which keeps its number.
std::string listing(const Program& program);

} // namespace kiln::isa
