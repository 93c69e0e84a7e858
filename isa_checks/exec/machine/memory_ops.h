// Memory operations: what a load, store or atomic moves, and doing it for the lanes of a wave.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include <cstdint>

namespace kiln::exec {

enum class Atomic : std::uint8_t {
  none, swap, cmpswap, add, sub, rsub, smin, umin, smax, umax, bit_and, bit_or, bit_xor, inc, dec,
  add_f32, pk_add_f16, pk_add_bf16, add_f64, min_f64, max_f64, min_f32, max_f32,
  masked_or, wrap, cmpswap_f32, cmpswap_f64 // LDS only
};
// Whether an LDS atomic has two data registers.
constexpr bool takes_two(Atomic a) { return a == Atomic::cmpswap || a >= Atomic::masked_or; }

struct MemoryOp {
  std::uint8_t bytes = 4;       // a lane and access: 1, 2, 4, 8, 12 or 16
  bool store = false, sign = false;
  std::uint8_t half = 0;        // d16: 1 low half, 2 high half, the other half kept
  Atomic atomic = Atomic::none;
  bool to_lds = false;          // direct-to-LDS load
  bool returns = false;         // LDS atomics: the _rtn form
  std::uint8_t pair_stride = 0; // LDS read2 and write2: bytes a unit of offset
};

struct LaneAddresses {
  alignas(64) std::uint64_t lane[lane_count];
  std::uint64_t mask = 0; // lanes that access
};

// Device memory through the sandbox. Reports what lies outside, or is not writable, and goes on: loads give 0 there.
void load_lanes(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);
void store_lanes(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);
void atomic_lanes(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);
void load_to_lds(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);

// The old value becomes the result; `data` and `compare` hold op.bytes bytes.
std::uint64_t apply_atomic(Atomic atomic, std::uint8_t bytes, std::uint64_t old, std::uint64_t data, std::uint64_t compare);

// A load, store or atomic on LDS through flat addresses that stand for it; `at` holds LDS bytes.
void flat_lds_access(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);

// What is in flight after a vector memory instruction, and whether it may be a wave's waiting for others.
void note_in_flight(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);

// Counts the lines and bytes of one access.
void count_lines(Wave& wave, const Inst& inst, const MemoryOp& op, const LaneAddresses& at);

} // namespace kiln::exec
