// LiveRegisters: how many vector registers hold values that are still needed, at every instruction, and whose values they are where
// most are.
#pragma once
#include "isa_checks/decode/program.h"
#include "isa_checks/target/registers.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::isa {

struct LiveCount {
  std::uint16_t arch = 0, accumulation = 0;
  int all() const { return arch + accumulation; }
};

// Values that are live at the peak and were written by instructions of one name.
struct LiveValues {
  std::string writer; // mnemonic; "" for those that nothing writes before
  int registers = 0;
  std::string names; // "v[0:63], a[4:7]"
};

struct LiveRegisters {
  std::vector<LiveCount> before;  // by instruction: what it or a later one may read; zeros where no path leads
  std::size_t peak = nothing;     // the first instruction before which most registers are live; nothing: no code
  std::vector<LiveValues> values; // at the peak, most first; a value belongs to its last writer before the peak, by address
  bool complete = true;           // false: the work budget ended, and all counts are zero
};

// Backward data flow over the flow graph. A write ends the life of what was there before, also when only some lanes are on; a part
// that an instruction keeps counts as read. Nothing is known of what calls read.
LiveRegisters live_registers(const Program& program);

// "peak 187 (123 architectural + 64 accumulation) at 0x2f40: 64 of v_mfma_... (a[0:63]), ..."; the three largest.
std::string to_text(const LiveRegisters& live, const Program& program);

} // namespace kiln::isa
