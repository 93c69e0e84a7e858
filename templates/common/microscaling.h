// Scales that are powers of two: scale_up(x, s), scale_down(x, s), and to_scaled<T>(x, s), which is scale_down and rounding in one.
#pragma once
#include "common/mx_convert.h"

namespace kiln {

template <class A, class S> KILN_DEVICE auto scale_up(A a, S s) { return a * s; }
template <class A, class S> KILN_DEVICE auto scale_down(A a, S s) {
  return a * map([](f32 each) KILN_OWN_LINES { return detail::inverse_of_power(each); }, s);
}

// The power of two at or below |x|, over 2^n, at least 2^-127; NaN for NaN and infinity. 0 < n < 127.
template <int n> KILN_DEVICE f32 power_over(f32 x) {
  const f32 power = bit_cast<f32>(platform::max(bit_cast<u32>(x) & detail::exponent_bits, static_cast<u32>(n) << 23)); // at least 2^(n - 127)
  return platform::fma(x, 0.0f, power * bit_cast<f32>(static_cast<u32>(127 - n) << 23));
}

namespace detail {

// Whether an instruction converts T with a scale of S.
template <class T, class S> inline constexpr bool converts_with_scale = has_scaled_convert && width<S> == 0;

template <class T, int half, int N> KILN_DEVICE void put_fp8(Bytes<T, N>& to, Vec<f32, N> x, f32 scale) {
  if constexpr (half * 2 < N) {
    u32& word = to.word[half / 2];
    word = platform::pack_scaled_fp8<Fp8<T>::e4m3, half % 2>(x[2 * half], x[2 * half + 1 < N ? 2 * half + 1 : 0], scale, word);
    put_fp8<T, half + 1>(to, x, scale);
  }
}
template <class T, int half, int N> KILN_DEVICE void take_fp8(Vec<f32, N>& to, Bytes<T, N> bytes, f32 scale) {
  if constexpr (half * 2 < N) {
    const Vec<f32, 2> pair = platform::unpack_scaled_fp8<Fp8<T>::e4m3, half % 2>(bytes.word[half / 2], scale);
    to[2 * half] = pair.x;
    if constexpr (2 * half + 1 < N) to[2 * half + 1] = pair.y;
    take_fp8<T, half + 1>(to, bytes, scale);
  }
}

} // namespace detail

template <int N, class S> KILN_DEVICE Vec<f32, N> scale_up(Bytes<e2m1, N> q, S s) {
  if constexpr (detail::converts_with_scale<e2m1, S>) return detail::unpack_scaled_e2m1(q, s);
  else return to<f32>(q) * s;
}
template <class T, int N, class S> KILN_DEVICE Vec<f32, N> scale_up(Bytes<T, N> q, S s) {
  if constexpr (is_fp8<T> && detail::converts_with_scale<T, S>) {
    Vec<f32, N> x;
    detail::take_fp8<T, 0>(x, q, s);
    return x;
  } else {
    return to<f32>(q) * s;
  }
}

// x / s rounded to T; beyond the largest number: that one. By rule: s is NaN where x is NaN or an infinity, and at most 2^125.
inline constexpr bool by_rule = true;
template <class T, bool rule = false, int N, class S> KILN_DEVICE auto to_scaled(Vec<f32, N> x, S s) {
  if constexpr (is_packed<T> && detail::converts_with_scale<T, S>) {
    return detail::pack_scaled_e2m1(x, s);
  } else if constexpr (is_packed<T>) {
    return to<T>(scale_down(x, s));
  } else if constexpr (detail::converts_with_scale<T, S>) {
    // The instruction overflows instead: magnitudes are limited before. A scale that is NaN gives NaN whatever x is.
    const f32 most = Fp8<T>::max * s;
    const auto limited = map([most](f32 v) KILN_OWN_LINES { return platform::median(v, -most, most); }, x);
    Bytes<T, N> bytes;
#pragma unroll
    for (u32& word : bytes.word) word = platform::any_value();
    if constexpr (rule) detail::put_fp8<T, 0>(bytes, limited, s);
    else if constexpr (Fp8<T>::has_infinity) detail::put_fp8<T, 0>(bytes, map([](f32 v, f32 c) KILN_OWN_LINES { return platform::abs(v) < platform::infinity ? c : v; }, x, limited), s);
    else detail::put_fp8<T, 0>(bytes, platform::fma(x, Vec<f32, N>(0.0f), limited), s);
    return bytes;
  } else if constexpr (!Fp8<T>::native) {
    const auto factor = map([](f32 each) KILN_OWN_LINES { return rule ? detail::inverse_of_double(each) : 0.5f * detail::inverse_of_power(each); }, s);
    return detail::pack_ocp_fp8<T, Fp8<T>::e4m3, !rule>(x * factor);
  } else {
    return to<T>(scale_down(x, s));
  }
}

} // namespace kiln
