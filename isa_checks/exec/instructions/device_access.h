// Loads, stores and atomics of vector memory, done for the lanes of a wave.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"

// The atomics on whole numbers of every kind of memory: their names in a mnemonic, and as Atomic has them.
#define KILN_EACH_ATOMIC(line)                                                                                                             \
  line("swap", swap), line("cmpswap", cmpswap), line("add", add), line("sub", sub), line("smin", smin), line("umin", umin),                \
      line("smax", smax), line("umax", umax), line("and", bit_and), line("or", bit_or), line("xor", bit_xor), line("inc", inc),            \
      line("dec", dec)

namespace kiln::exec {

// What a load into one half of a register leaves in it. With ECC, which MI300 and MI350 parts have, the other half is not kept (LLVM's
// feature sramecc says so): it becomes noise, which is neither what was there nor zero.
inline std::uint32_t in_half(std::uint32_t reg, std::uint32_t value, const LaneAccess& op) {
  const std::uint32_t noise = reg ^ 0x5a5a5a5aU;
  if (op.half == 1) return (noise & 0xffff0000U) | (value & 0xffffU);
  if (op.half == 2) return (noise & 0xffffU) | value << 16;
  return value;
}

// Device memory through the sandbox. Reports what lies outside, or is not writable, and goes on: loads give 0 there.
void load_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);
void store_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);
void atomic_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);
void load_to_lds(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);

// The old value becomes the result; `data` and `compare` hold op.bytes bytes.
std::uint64_t apply_atomic(Atomic atomic, std::uint8_t bytes, std::uint64_t old, std::uint64_t data, std::uint64_t compare);

// A load, store or atomic on LDS through flat addresses that stand for it; `at` holds LDS bytes.
void flat_lds_access(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);

// What is in flight after a vector memory instruction, and whether it may be a wave's waiting for others.
void note_in_flight(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);

// Counts the lines and bytes of one access.
void count_lines(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);

} // namespace kiln::exec
