// The instructions that decide which way waves go and what they access: an executor that leaves out the others goes through the same
// instructions and accesses the same places.
#pragma once
#include "isa_checks/decode/program.h"
#include <cstdint>
#include <vector>

namespace kiln::isa {

// By instruction: 1 when nothing that decides depends on its results. The results of a memory instruction are what it loads, or what it
// leaves in memory; its addresses always decide. Matrix instructions are never wanted: their results are taken to decide nothing.
// `stores_decide`: what is stored to device memory may be loaded again by an instruction whose results are wanted. Without it, the caller
// makes sure that those load from memory that the launch does not write.
std::vector<std::uint8_t> unwanted_results(const Program& program, bool stores_decide);

} // namespace kiln::isa
