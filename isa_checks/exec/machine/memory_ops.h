// What a load, store or atomic moves for one lane, and the addresses of a wave's lanes.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include <cstdint>
#include <string_view>

namespace kiln::exec {

enum class Atomic : std::uint8_t {
  none,
  swap,
  cmpswap,
  add,
  sub,
  rsub,
  smin,
  umin,
  smax,
  umax,
  bit_and,
  bit_or,
  bit_xor,
  inc,
  dec,
  add_f32,
  pk_add_f16,
  pk_add_bf16,
  add_f64,
  min_f64,
  max_f64,
  min_f32,
  max_f32,
  masked_or,
  wrap,
  cmpswap_f32,
  cmpswap_f64 // LDS only
};
// Whether an LDS atomic has two data registers.
constexpr bool takes_two(Atomic a) { return a == Atomic::cmpswap || a >= Atomic::masked_or; }

struct LaneAccess {
  std::uint8_t bytes = 4; // a lane and access: 1, 2, 4, 8, 12 or 16
  bool store = false, sign = false;
  std::uint8_t half = 0; // d16: 1 low half, 2 high half, the other half kept
  Atomic atomic = Atomic::none;
  bool to_lds = false;          // direct-to-LDS load
  bool returns = false;         // LDS atomics: the _rtn form
  std::uint8_t pair_stride = 0; // LDS read2 and write2: bytes a unit of offset
};

// The line of an instruction table for what moves `op`.
template <LaneAccess op> inline constexpr LaneAccess stored = op;
template <LaneAccess op> constexpr Semantics line(std::string_view name, Handler handler) { return {name, handler, {}, &stored<op>}; }

struct WaveAddresses {
  alignas(64) std::uint64_t lane[lane_count];
  std::uint64_t mask = 0; // lanes that access
};

} // namespace kiln::exec
