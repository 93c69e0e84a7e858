// What configs share between the host's generator and the device: sizes that both architectures have, integer arithmetic; no std.
#pragma once

namespace kiln {

// Shared by gfx942 and gfx950. Sources: LLVM's AMDGPUBaseInfo.cpp (namespace IsaInfo). tests/compile/target_tables.cpp compares them
// with isa_checks' target table.
inline constexpr int wave_size = 64;            // lanes
inline constexpr int max_workgroup_size = 1024; // work-items: 16 waves
inline constexpr int simds_per_cu = 4;
inline constexpr int max_vgprs = 512;           // for each lane of a SIMD, VGPRs and AGPRs together; its waves share them

template <bool first, class X, class Y> struct EitherOf { using type = X; };
template <class X, class Y> struct EitherOf<false, X, Y> { using type = Y; };
template <bool first, class X, class Y> using Either = typename EitherOf<first, X, Y>::type;

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
// VGPRs and AGPRs of each wave when the `waves` of a workgroup are spread over the SIMDs of a CU.
constexpr int vgprs_of_wave(int waves) { return max_vgprs / ceil_div(waves, simds_per_cu); }
// VGPRs and AGPRs of a wave when `waves` share a SIMD; they come in eights.
constexpr int vgprs_of_waves_per_eu(int waves) { return max_vgprs / waves / 8 * 8; }
inline constexpr int max_waves_per_eu = 8;
constexpr const char* why_invalid_waves_per_eu(int waves) {
  return waves < 0 || waves > max_waves_per_eu ? "waves_per_eu must be from 1 to 8, or 0: as many as the registers give" : nullptr;
}
constexpr int power_of_two_from(int value) { // the least that is not less
  int power = 1;
  while (power < value) power *= 2;
  return power;
}
constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

} // namespace kiln
