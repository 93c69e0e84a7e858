// LaneValue: what is known of a register over the 64 lanes of a wave, and arithmetic on it.
#pragma once
#include "isa_checks/target/target_table.h"
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

namespace kiln::isa {

// Lane i holds base + lane[i] modulo 2^32, where base is the same in all lanes and has no bits outside of `mask`; nothing
// else is known of it. With an empty mask base is 0: the value is known. A scalar register is the same in all lanes.
struct LaneValue {
  std::array<std::uint32_t, wave_size> lane{};
  std::uint32_t mask = 0;

  bool known() const { return mask == 0; }
  int zeros() const { return std::countr_zero(mask); } // base is a multiple of 2^zeros; 32 when it is 0
  bool uniform() const;                                // the same in all lanes, if unknown
  std::optional<std::uint32_t> constant() const;       // known and uniform
  // From lane to lane the same step: its bytes. Nothing otherwise.
  std::optional<std::int32_t> step() const;
  bool operator==(const LaneValue&) const = default;
};

LaneValue constant_value(std::uint32_t number);
LaneValue uniform_value(std::uint32_t mask = ~std::uint32_t{0}); // unknown, but the same in all lanes

// Every operation gives the strongest that it can say, or nothing. Shift counts are taken modulo 32.
using Maybe = std::optional<LaneValue>;
Maybe add(const LaneValue& a, const LaneValue& b);
Maybe subtract(const LaneValue& a, const LaneValue& b);
Maybe multiply(const LaneValue& a, const LaneValue& b);
Maybe shift_left(const LaneValue& a, const LaneValue& count);
Maybe shift_right(const LaneValue& a, const LaneValue& count, bool arithmetic);
Maybe bit_and(const LaneValue& a, const LaneValue& b);
Maybe bit_or(const LaneValue& a, const LaneValue& b);
Maybe bit_xor(const LaneValue& a, const LaneValue& b);
// What holds on two paths that meet: `a`, with as much of the base left unknown as `b` demands.
Maybe join(const LaneValue& a, const LaneValue& b);

} // namespace kiln::isa
