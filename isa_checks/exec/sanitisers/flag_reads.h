// Flag reads: which LDS reads and atomics a program uses to wait for other waves, found from where their results go.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::exec {

enum class FlagUse : std::uint8_t {
  none,
  decides, // the value decides a branch or EXEC, through moves, integer operations and comparisons only
  polls    // and that branch leaves a loop that reads the value again
};

// By index of the program. Followed through registers for a bounded number of instructions after the read: a flag is tested
// soon. What goes through floating-point arithmetic, conversions, matrix instructions or memory is data, not a flag.
std::vector<FlagUse> find_flag_reads(std::span<const Inst> program);

} // namespace kiln::exec
