// Searches: the column of the largest or smallest element, of one lane and across the lanes of a wave.
#pragma once
#include "common/reduce.h"

namespace kiln {
namespace detail {

// What the lane at `distance` (16 or 32) has, when lanes of an aligned group of `distance` are alike.
template <int distance> KILN_DEVICE f32 other_half(f32 v) {
  const u32 lane = platform::lane_id();
  if constexpr (has_permlane_swap) {
    const auto [first, second] = platform::swap_halves<distance>(v);
    return lane & distance ? first : second;
  } else if constexpr (distance == 32) {
    return lane & 32 ? platform::read_lane(v, 0) : platform::read_lane(v, 32);
  } else {
    const f32 low = lane & 16 ? platform::read_lane(v, 0) : platform::read_lane(v, 16);
    const f32 high = lane & 16 ? platform::read_lane(v, 32) : platform::read_lane(v, 48);
    return lane & 32 ? high : low;
  }
}

} // namespace detail

// A candidate for the largest (smallest) element of a row, and its column as bits; no_column for none.
inline constexpr u32 no_column = 0xffffffff;
struct Found {
  f32 value;
  u32 column;
};
template <class R> KILN_DEVICE Found better_of(Found a, Found b) {
  static_assert(__is_same(R, MaxOf) || __is_same(R, MinOf));
  const bool beats = __is_same(R, MaxOf) ? b.value > a.value : b.value < a.value;
  return beats || (b.value == a.value && b.column < a.column) ? b : a;
}

// Over aligned groups of `lanes` lanes, up to 64; every lane gets its group's.
template <class R, int lanes> KILN_DEVICE Found found_across_lanes(Found own) {
  using platform::dpp, platform::Dpp;
  const auto with = [&](f32 value, f32 column) KILN_LAMBDA { return better_of<R>(own, {value, bit_cast<u32>(column)}); };
  // Columns cross lanes as they are, in the shape of an f32.
  if constexpr (lanes >= 2) own = with(dpp<Dpp::quad_swap1>(own.value), dpp<Dpp::quad_swap1>(bit_cast<f32>(own.column)));
  if constexpr (lanes >= 4) own = with(dpp<Dpp::quad_swap2>(own.value), dpp<Dpp::quad_swap2>(bit_cast<f32>(own.column)));
  if constexpr (lanes >= 8) own = with(dpp<Dpp::half_mirror>(own.value), dpp<Dpp::half_mirror>(bit_cast<f32>(own.column)));
  if constexpr (lanes >= 16) own = with(dpp<Dpp::mirror>(own.value), dpp<Dpp::mirror>(bit_cast<f32>(own.column)));
  if constexpr (lanes >= 32) own = with(detail::other_half<16>(own.value), detail::other_half<16>(bit_cast<f32>(own.column)));
  if constexpr (lanes >= 64) own = with(detail::other_half<32>(own.value), detail::other_half<32>(bit_cast<f32>(own.column)));
  return own;
}

// One lane's part of a search for the column of the largest (smallest) element.
template <class R> struct ArgAccumulator {
  Found best = {R::identity, no_column};
  f32 total = 0; // the column, after Row::find

  template <int N> KILN_MEMBER void add(At at, Vec<f32, N> x, u32 column) {
    x = detail::existing(at, x, R::identity);
#pragma unroll
    for (int i = 0; i < N; ++i) { // a lane's columns rise, so that the first of those alike stays
      const bool beats = __is_same(R, MaxOf) ? x[i] > best.value : x[i] < best.value;
      best.value = beats ? x[i] : best.value;
      best.column = beats ? column + i : best.column;
    }
  }
};

} // namespace kiln
