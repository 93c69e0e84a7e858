// What an instruction is for: its class, the memory it touches, the counters it waits for.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include <optional>

namespace kiln::isa {

inline InstructionClass classify(const Instruction& instruction) { return instruction.kind; }

// Nothing for instructions that touch no memory, such as ds_bpermute_b32, and for cache control.
inline std::optional<MemoryOp> memory_op(const Instruction& instruction) { return instruction.memory; }

// The operand of s_waitcnt: a counter that may stay at its maximum (63, 7, 15) is not waited for, and absent.
struct WaitCounts {
  std::optional<int> vmcnt, expcnt, lgkmcnt;
  bool operator==(const WaitCounts&) const = default;
};
std::optional<WaitCounts> wait_counts(const Instruction& instruction); // nothing for anything but s_waitcnt
int nop_states(const Instruction& instruction);                        // wait states of s_nop; 0 for anything but that

} // namespace kiln::isa
