// What an execution counts: per instruction of the program, and per class over all waves.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <array>
#include <cstdint>

namespace kiln::exec {

struct InstCounters {
  std::uint64_t executed = 0, lanes = 0;       // times, and active lanes over them
  std::uint64_t bytes = 0;                     // moved, over active lanes (memory instructions)
  std::uint64_t lines64 = 0, lines128 = 0;     // distinct 64-byte and 128-byte lines that each execution touched, summed
  std::uint64_t lds_cycles = 0, lds_ideal = 0; // bank passes needed, and needed without conflicts
  // At an s_waitcnt: bytes that the wave's loads from device memory had in flight; summed over all times, and the most.
  std::uint64_t in_flight = 0, in_flight_peak = 0;
  // At an s_waitcnt: operations that the wave had outstanding (issued and not waited for), at most 63 of vmcnt and 15 of
  // lgkmcnt; the least and the most over all times. Other instructions, and those never executed, keep least > most.
  std::uint8_t min_vm = 255, max_vm = 0, min_lgkm = 255, max_lgkm = 0;
  void note_outstanding(int vm, int lgkm);
  void add(const InstCounters& other);
};

using ClassCounts = std::array<std::uint64_t, inst_class_count>;

} // namespace kiln::exec
