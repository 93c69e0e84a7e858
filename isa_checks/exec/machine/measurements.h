// What an execution counts: per instruction of the program, and per class over all waves.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include <algorithm>
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
  void note_outstanding(int vm, int lgkm) {
    const auto vm8 = static_cast<std::uint8_t>(vm), lgkm8 = static_cast<std::uint8_t>(lgkm);
    min_vm = std::min(min_vm, vm8);
    max_vm = std::max(max_vm, vm8);
    min_lgkm = std::min(min_lgkm, lgkm8);
    max_lgkm = std::max(max_lgkm, lgkm8);
  }

  void add(const InstCounters& other) {
    executed += other.executed;
    lanes += other.lanes;
    bytes += other.bytes;
    lines64 += other.lines64;
    lines128 += other.lines128;
    lds_cycles += other.lds_cycles;
    lds_ideal += other.lds_ideal;
    in_flight += other.in_flight;
    in_flight_peak = std::max(in_flight_peak, other.in_flight_peak);
    min_vm = std::min(min_vm, other.min_vm);
    max_vm = std::max(max_vm, other.max_vm);
    min_lgkm = std::min(min_lgkm, other.min_lgkm);
    max_lgkm = std::max(max_lgkm, other.max_lgkm);
  }
};

using ClassCounts = std::array<std::uint64_t, inst_class_count>;

} // namespace kiln::exec
