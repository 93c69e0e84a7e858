// Reductions: accumulators of one lane, and their combination across the lanes of a wave by DPP.
#pragma once
#include "common/stream.h"

namespace kiln {

struct SumOf {
  static constexpr f32 identity = 0.0f;
  KILN_DEVICE f32 combine(f32 a, f32 b) { return a + b; }
};
// IEEE maxNum and minNum: NaN loses against a number.
struct MaxOf {
  static constexpr f32 identity = -platform::infinity;
  KILN_DEVICE f32 combine(f32 a, f32 b) { return platform::max(a, b); }
};
struct MinOf {
  static constexpr f32 identity = platform::infinity;
  KILN_DEVICE f32 combine(f32 a, f32 b) { return platform::min(a, b); }
};
struct AbsMaxOf {
  static constexpr f32 identity = 0.0f;
  KILN_DEVICE f32 combine(f32 a, f32 b) { return platform::max(a, b); }
};
// NaN wins.
struct AbsMaxNanOf {
  static constexpr f32 identity = 0.0f;
  KILN_DEVICE f32 combine(f32 a, f32 b) { return platform::maximum(a, b); }
};
template <class R> inline constexpr bool of_magnitudes = __is_same(R, AbsMaxOf) || __is_same(R, AbsMaxNanOf);

namespace detail {

// Both lanes of a pair at distance `distance` (16 or 32) get combine(own, other's).
template <class R, int distance> KILN_DEVICE f32 combine_halves(f32 v) {
  if constexpr (has_permlane_swap) {
    const auto [own, other] = platform::swap_halves<distance>(v);
    return R::combine(own, other);
  } else if constexpr (distance == 32) {
    return R::combine(platform::read_lane(v, 0), platform::read_lane(v, 32)); // all lanes of a half are alike by now
  } else {
    const f32 low = R::combine(platform::read_lane(v, 0), platform::read_lane(v, 16));
    const f32 high = R::combine(platform::read_lane(v, 32), platform::read_lane(v, 48));
    return platform::lane_id() & 32 ? high : low;
  }
}

// `x` with `other` where the lane has no element.
template <class T, int N> KILN_DEVICE Vec<T, N> existing(At at, Vec<T, N> x, T other) {
  if (!at.partial) return x;
#pragma unroll
  for (int i = 0; i < N; ++i) x[i] = i < at.count ? x[i] : other;
  return x;
}

} // namespace detail

// Combines `v` over aligned groups of `lanes` lanes (a power of two up to 64); every lane gets its group's result.
template <class R, int lanes> KILN_DEVICE f32 across_lanes(f32 v) {
  using platform::dpp, platform::Dpp;
  if constexpr (lanes >= 2) v = R::combine(v, dpp<Dpp::quad_swap1>(v));
  if constexpr (lanes >= 4) v = R::combine(v, dpp<Dpp::quad_swap2>(v));
  if constexpr (lanes >= 8) v = R::combine(v, dpp<Dpp::half_mirror>(v));
  if constexpr (lanes >= 16) v = R::combine(v, dpp<Dpp::mirror>(v));
  if constexpr (lanes >= 32) v = detail::combine_halves<R, 16>(v);
  if constexpr (lanes >= 64) v = detail::combine_halves<R, 32>(v);
  return v;
}

// One lane's part of a reduction. Two partial results when elements come in pairs, for packed arithmetic.
template <class R> struct Accumulator {
  Vec<f32, 2> partial = {R::identity, R::identity};
  f32 total = R::identity; // after Row::reduce

  template <int N> KILN_MEMBER void add(At at, Vec<f32, N> x) {
    if constexpr (of_magnitudes<R>) x = platform::abs(x);
    x = detail::existing(at, x, R::identity);
    if constexpr (N == 1) {
      partial.x = R::combine(partial.x, x[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N; i += 2) {
        if constexpr (__is_same(R, SumOf)) partial += Vec<f32, 2>{x[i], x[i + 1]};
        else partial.x = R::combine(R::combine(partial.x, x[i]), x[i + 1]); // v_max3_f32, v_min3_f32
      }
    }
  }
  // The sum of products, for types that the target multiplies and adds in one instruction.
  template <class T, int N> KILN_MEMBER void add_products(At at, Vec<T, N> a, Vec<T, N> b) {
    static_assert(__is_same(R, SumOf));
    using T2 = Vec<T, 2>;
    a = detail::existing(at, a, T(0));
    b = detail::existing(at, b, T(0));
    if constexpr (N == 1) {
      partial.x += static_cast<f32>(a[0]) * static_cast<f32>(b[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N; i += 2) partial.x = platform::dot2(T2{a[i], a[i + 1]}, T2{b[i], b[i + 1]}, partial.x);
    }
  }
  KILN_MEMBER f32 own() const { return R::combine(partial.x, partial.y); }
};

// The reduction of each group of `group` consecutive elements, of which a lane holds N: one f32 a lane.
template <class R, int group, int N> KILN_DEVICE f32 reduce_group(At at, Vec<f32, N> x) {
  static_assert(group % N == 0 && group / N <= 64, "a group takes at most the lanes of a wave");
  Accumulator<R> accumulator;
  accumulator.add(at, x);
  return across_lanes<R, group / N>(accumulator.own());
}

} // namespace kiln
