// What lanes of a wave exchange beyond reductions, as functions: shifts, ballots, partners, running sums.
#pragma once
#include "common/platform.h"

namespace kiln::platform {

// What the lane that many places below in its 16 has, or below in the wave; the last lane of the 16 (32) below. 0 where there is none,
// and in rows of 16 lanes that `rows` has no bit for.
enum class Shift : int { by_1 = 0x111, by_2 = 0x112, by_4 = 0x114, by_8 = 0x118, wave_by_1 = 0x138, end_of_16 = 0x142, end_of_32 = 0x143 };
template <Shift control, int rows = 0xf> KILN_DEVICE f32 shifted(f32 value) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, value), static_cast<int>(control), rows, 0xf, false));
}
template <Shift control, int rows = 0xf> KILN_DEVICE u32 shifted(u32 value) {
  return static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), static_cast<int>(control), rows, 0xf, false));
}
// The upper eight of every 16 lanes give what they have in `first` for what the lower eight have in `second`.
KILN_DEVICE void exchange_eights(u32& first, u32& second) {
  constexpr int rotate8 = 0x128, upper = 0xc, lower = 0x3; // banks of four lanes
  const int a = static_cast<int>(first), b = static_cast<int>(second);
  first = static_cast<u32>(__builtin_amdgcn_update_dpp(a, b, rotate8, 0xf, upper, false));
  second = static_cast<u32>(__builtin_amdgcn_update_dpp(b, a, rotate8, 0xf, lower, false));
}
// The lowest of the lanes that `condition` holds in, if there is one; and the number of one lane, the same in all.
KILN_DEVICE int first_lane(bool condition) { return __builtin_ctzll(__builtin_amdgcn_ballot_w64(condition)); }
template <class Lane> KILN_DEVICE u32 read_lane(u32 value, Lane lane) {
  return static_cast<u32>(__builtin_amdgcn_readlane(static_cast<int>(value), static_cast<int>(lane)));
}
// Accesses of this wave's lanes to LDS before it are done before those after it.
KILN_DEVICE void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront", "local");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront", "local");
}

// The lanes in which it holds, a bit each; how many lanes such bits name, and how many below this one.
KILN_DEVICE u64 lanes_where(bool condition) { return __builtin_amdgcn_ballot_w64(condition); }
KILN_DEVICE u32 lowest_lane(u64 lanes) { return static_cast<u32>(__builtin_ctzll(lanes)); }
KILN_DEVICE u32 count_lanes(u64 lanes) { return static_cast<u32>(__builtin_popcountll(lanes)); }
KILN_DEVICE u32 lanes_below(u64 lanes) {
  return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(lanes >> 32), __builtin_amdgcn_mbcnt_lo(static_cast<u32>(lanes), 0u));
}

// Whether it holds in some lane; all take part.
KILN_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }
// What another lane has; all lanes take part. Through the paths of LDS, so that it takes as long as a read of LDS.
KILN_DEVICE f32 of_lane(f32 value, u32 lane) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_ds_bpermute(static_cast<int>(lane * 4), __builtin_bit_cast(int, value)));
}
// What the lane whose number differs in the bit `distance` has; lanes that take part do so with that one. 1 to 8 by DPP; 16 and 32
// through the paths of LDS, where permlane swaps are not there.
template <int distance> KILN_DEVICE u32 of_partner_lane(u32 value) {
  const f32 bits = __builtin_bit_cast(f32, value);
  if constexpr (distance == 1) return __builtin_bit_cast(u32, dpp<Dpp::quad_swap1>(bits));
  else if constexpr (distance == 2) return __builtin_bit_cast(u32, dpp<Dpp::quad_swap2>(bits));
  else if constexpr (distance == 4) return __builtin_bit_cast(u32, dpp<Dpp::quad_mirror>(dpp<Dpp::half_mirror>(bits))); // 7 ^ 3
  else if constexpr (distance == 8) return __builtin_bit_cast(u32, dpp<Dpp::rotate8>(bits));
  else if constexpr (distance == 16) return static_cast<u32>(__builtin_amdgcn_ds_swizzle(static_cast<int>(value), 0x401f)); // lane ^ 16
  else return __builtin_bit_cast(u32, of_lane(bits, lane_id() ^ 32));
}
// The sum of the values of this lane and of all before it.
KILN_DEVICE u32 sum_up_to_lane(u32 value) {
  // row_shr:1, 2, 4 and 8 inside 16 lanes, then the last lane of a row of 16 to the next row, and of the first half to the second.
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x111, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x112, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x114, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x118, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x142, 0xa, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x143, 0xc, 0xf, false));
  return value;
}

} // namespace kiln::platform
