// The wait counters of gfx9: what each instruction counts in, in which order it comes back, and what s_waitcnt asks for. The static
// analysis of waits and the executor both follow this.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include <cstdint>

namespace kiln::isa {

// vmcnt counts vector memory operations, loads and stores alike, in order. lgkmcnt counts LDS in order, GDS in order, and scalar
// memory and messages in any order. Flat operations count in both and come back in any order (AMDGPUUsage). expcnt counts GDS
// operations that have yet to read their registers, in order.
struct CounterUse {
  bool vm = false, lgkm = false, exp = false;
  bool unordered = false;       // completes in any order with others of its counters
  bool gds = false;             // completes in any order with those that are not GDS operations
  std::uint16_t load_bytes = 0; // per lane, of a load from device memory
};
CounterUse counter_use(const Instruction& instruction);

// The operand of s_waitcnt: what may stay outstanding of each counter.
struct WaitFields {
  int vmcnt, expcnt, lgkmcnt;
};
constexpr WaitFields wait_fields(std::uint16_t operand) {
  return {(operand & 15) | (operand >> 14 << 4), operand >> 4 & 7, operand >> 8 & 15};
}

} // namespace kiln::isa
