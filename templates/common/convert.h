// Conversions between a Chunk of memory elements and f32: to<f32>(chunk), to<T>(values), to_nonsaturating<T>(values).
#pragma once
#include "common/vec.h"

namespace kiln {

// Which of the two fp8 shapes, its largest finite value, and whether the target converts it in hardware.
template <class T> struct Fp8;
template <> struct Fp8<e4m3fn> {
  static constexpr bool e4m3 = true, native = has_ocp_fp8, ocp = true, has_infinity = false;
  static constexpr f32 max = 448;
};
template <> struct Fp8<e4m3fnuz> {
  static constexpr bool e4m3 = true, native = !has_ocp_fp8, ocp = false, has_infinity = false;
  static constexpr f32 max = 240;
};
template <> struct Fp8<e5m2> {
  static constexpr bool e4m3 = false, native = has_ocp_fp8, ocp = true, has_infinity = true;
  static constexpr f32 max = 57344;
};
template <> struct Fp8<e5m2fnuz> {
  static constexpr bool e4m3 = false, native = !has_ocp_fp8, ocp = false, has_infinity = false;
  static constexpr f32 max = 57344;
};
template <class T> inline constexpr bool is_fp8 = false;
template <> inline constexpr bool is_fp8<e4m3fn> = true;
template <> inline constexpr bool is_fp8<e4m3fnuz> = true;
template <> inline constexpr bool is_fp8<e5m2> = true;
template <> inline constexpr bool is_fp8<e5m2fnuz> = true;

namespace detail {

// What common/mx_convert.h has; few kernels have these types.
template <class T> KILN_DEVICE f32 rounded_to_power(f32 x);
template <int N> KILN_DEVICE Bytes<e8m0, N> pack_powers(Vec<f32, N> x);
template <int N> KILN_DEVICE Vec<f32, N> unpack_powers(Bytes<e8m0, N> bytes);
template <int N> KILN_DEVICE Bytes<e2m1, N> pack_e2m1(Vec<f32, N> x);
template <int N> KILN_DEVICE Vec<f32, N> unpack_e2m1(Bytes<e2m1, N> bytes);
template <class T, bool e4m3, bool infinities, int N> KILN_DEVICE Bytes<T, N> pack_ocp_fp8(Vec<f32, N> half);
template <bool e4m3, class T, int N> KILN_DEVICE Vec<f32, N> unpack_ocp_fp8(Bytes<T, N> bytes);

template <class V> KILN_DEVICE auto splat_like(f32 value) {
  if constexpr (width<V> == 0) return value;
  else return V(value);
}

// Beyond the largest finite value becomes that value; NaN stays NaN, infinity becomes NaN (stays in e5m2).
template <class T, class V> KILN_DEVICE V saturate(V x) {
  constexpr f32 max = Fp8<T>::max;
  const V clamped = map([](f32 v) KILN_OWN_LINES { return platform::median(v, -max, max); }, x); // NaN gives -max
  // Adds NaN to NaN. Adds an infinity to the largest number of e5m2, NaN to that of other types. Adds 0 to all else; in e5m2 too little to
  // change what it is rounded to, less than 4 to 57344. Comparisons would need a mask a number, and many numbers are converted at a time.
  return platform::fma(x, splat_like<V>(Fp8<T>::has_infinity ? 0x1p-126f : 0.0f), clamped);
}

template <class T, int N> KILN_DEVICE Bytes<T, N> pack_fp8(Vec<f32, N> x) {
  static_assert(Fp8<T>::native, "this fp8 type is not native on this target");
  Bytes<T, N> bytes;
#pragma unroll
  for (int w = 0; w < Bytes<T, N>::words; ++w) {
    const int i = 4 * w;
    const f32 a = x[i], b = i + 1 < N ? x[i + 1 < N ? i + 1 : 0] : 0.0f;
    const f32 c = i + 2 < N ? x[i + 2 < N ? i + 2 : 0] : 0.0f, d = i + 3 < N ? x[i + 3 < N ? i + 3 : 0] : 0.0f;
    u32 word = platform::any_value(); // the half that is not written is not read
    if constexpr (Fp8<T>::e4m3) {
      word = platform::pack_e4m3<false>(a, b, word);
      if constexpr (N > 2) word = platform::pack_e4m3<true>(c, d, word);
    } else {
      word = platform::pack_e5m2<false>(a, b, word);
      if constexpr (N > 2) word = platform::pack_e5m2<true>(c, d, word);
    }
    bytes.word[w] = word;
  }
  return bytes;
}

template <class T, int N> KILN_DEVICE Vec<f32, N> unpack_fp8(Bytes<T, N> bytes) {
  static_assert(Fp8<T>::native || Fp8<T>::ocp, "this fp8 type is not native on this target");
  if constexpr (!Fp8<T>::native) return unpack_ocp_fp8<Fp8<T>::e4m3>(bytes);
  Vec<f32, N> x;
#pragma unroll
  for (int i = 0; i < N; i += 2) {
    const u32 word = bytes.word[i / 4];
    Vec<f32, 2> pair;
    if constexpr (Fp8<T>::e4m3) pair = i % 4 ? platform::unpack_e4m3<true>(word) : platform::unpack_e4m3<false>(word);
    else pair = i % 4 ? platform::unpack_e5m2<true>(word) : platform::unpack_e5m2<false>(word);
    x[i] = pair.x;
    if (i + 1 < N) x[i + 1 < N ? i + 1 : 0] = pair.y;
  }
  return x;
}

// Round to nearest even, clamp to the type, NaN to 0.
template <class T> KILN_DEVICE i32 to_integer(f32 x) {
  constexpr f32 low = __is_same(T, u8) ? 0.0f : __is_same(T, i8) ? -128.0f : -2147483648.0f;
  constexpr f32 high = __is_same(T, u8) ? 255.0f : __is_same(T, i8) ? 127.0f : 2147483520.0f;
  if constexpr (__is_same(T, i32)) {
    const i32 result = static_cast<i32>(platform::median(platform::round_to_even(x), low, high));
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : result;
  } else {
    return x != x ? 0 : static_cast<i32>(platform::median(platform::round_to_even(x), low, high));
  }
}

} // namespace detail

template <class T, int N> KILN_DEVICE Vec<f32, N> bytes_to_f32(Bytes<T, N> bytes) {
  if constexpr (is_packed<T>) {
    return detail::unpack_e2m1(bytes);
  } else if constexpr (__is_same(T, e8m0)) {
    return detail::unpack_powers(bytes);
  } else if constexpr (is_fp8<T>) {
    return detail::unpack_fp8<T, N>(bytes);
  } else {
    Vec<f32, N> x;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const u32 byte = bytes.word[i / 4] >> (8 * (i % 4)) & 0xff;
      if constexpr (__is_same(T, i8)) x[i] = static_cast<f32>(static_cast<i32>(byte << 24) >> 24);
      else x[i] = static_cast<f32>(byte);
    }
    return x;
  }
}

template <class To, int N> KILN_DEVICE auto to(Vec<f32, N> x);

// Memory elements (or f32 values) to f32.
template <class To, class T, int N> KILN_DEVICE Vec<f32, N> to(Bytes<T, N> bytes) { return bytes_to_f32(bytes); }
template <class To, int N> KILN_DEVICE auto to(Vec<f16, N> x) { return convert<Vec<To, N>>(x); }
template <class To, int N> KILN_DEVICE auto to(Vec<bf16, N> x) { return convert<Vec<To, N>>(x); }
template <class To, int N> KILN_DEVICE auto to(Vec<i32, N> x) { return convert<Vec<To, N>>(x); }
template <class To, int N> KILN_DEVICE auto to(Mask<N> m) {
  if constexpr (__is_same(To, f32)) {
    return map([](bool b) KILN_OWN_LINES { return b ? 1.0f : 0.0f; }, m);
  } else { // bool: a byte of 0 or 1 each
    Bytes<To, N> bytes{};
#pragma unroll
    for (int i = 0; i < N; ++i) bytes.word[i / 4] |= m.at[i] << (8 * (i % 4));
    return bytes;
  }
}

// f32 to memory elements; fp8 saturates.
template <class To, int N> KILN_DEVICE auto to(Vec<f32, N> x) {
  if constexpr (__is_same(To, f32)) {
    return x;
  } else if constexpr (is_packed<To>) {
    return detail::pack_e2m1(x);
  } else if constexpr (__is_same(To, e8m0)) {
    return detail::pack_powers(x);
  } else if constexpr (is_fp8<To>) {
    if constexpr (Fp8<To>::native) return detail::pack_fp8<To, N>(detail::saturate<To>(x));
    else return detail::pack_ocp_fp8<To, Fp8<To>::e4m3, true>(x * 0.5f);
  } else if constexpr (__is_same(To, i32)) {
    return map([](f32 v) KILN_OWN_LINES { return detail::to_integer<i32>(v); }, x);
  } else if constexpr (__is_same(To, bool)) {
    return to<bool>(map([](f32 v) KILN_OWN_LINES { return !(v == 0.0f); }, x));
  } else if constexpr (is_byte<To>) {
    Bytes<To, N> bytes{};
#pragma unroll
    for (int i = 0; i < N; ++i) bytes.word[i / 4] |= (static_cast<u32>(detail::to_integer<To>(x[i])) & 0xff) << (8 * (i % 4));
    return bytes;
  } else {
    return convert<Vec<To, N>>(x);
  }
}
template <class To, int N> KILN_DEVICE auto to_nonsaturating(Vec<f32, N> x) { return detail::pack_fp8<To, N>(x); }

// The one element of a chunk: an i32 as it is, all else as an f32.
template <class T, class C> KILN_DEVICE auto only_element(C chunk) {
  if constexpr (__is_same(T, i32)) return chunk[0];
  else return to<f32>(chunk)[0];
}

// One number rounded through T, as an f32; as an i32 through that.
template <class T> KILN_DEVICE auto rounded(f32 x) {
  if constexpr (__is_same(T, i32)) return detail::to_integer<i32>(x);
  else if constexpr (__is_same(T, e8m0)) return detail::rounded_to_power<T>(x);
  else return to<f32>(to<T>(Vec<f32, 1>(x)))[0];
}
template <class T> KILN_DEVICE f32 rounded_nonsaturating(f32 x) { return to<f32>(to_nonsaturating<T>(Vec<f32, 1>(x)))[0]; }

} // namespace kiln
