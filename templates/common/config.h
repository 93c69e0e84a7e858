// What configs share between the host's generator and the device: the sizes of machine/arch.h, integer arithmetic; no std.
#pragma once
#include "machine/arch.h"

namespace kiln {

template <bool first, class X, class Y> struct EitherOf { using type = X; };
template <class X, class Y> struct EitherOf<false, X, Y> { using type = Y; };
template <bool first, class X, class Y> using Either = typename EitherOf<first, X, Y>::type;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
// VGPRs and AGPRs of each wave when the `waves` of a workgroup are spread over the SIMDs of a CU.
constexpr int vgprs_of_wave(int waves) { return max_vgprs / ceil_div(waves, simds_per_cu); }
// VGPRs and AGPRs of a wave when `waves` share a SIMD.
constexpr int vgprs_of_waves_per_eu(int waves) { return max_vgprs / waves / vgpr_granule * vgpr_granule; }
constexpr const char* why_invalid_waves_per_eu(int waves) {
  return waves < 0 || waves > max_waves_per_simd ? "waves_per_eu must be from 1 to 8, or 0: as many as the registers give" : nullptr;
}
// Loads of a ring that a wave has in flight: vmcnt tells them apart, and a few others beside them.
inline constexpr int max_loads_in_flight = max_vmcnt - 3;
constexpr int power_of_two_from(int value) { // the least that is not less
  int power = 1;
  while (power < value) power *= 2;
  return power;
}
constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

} // namespace kiln
