// Conversions of what MX formats consist of: e2m1, e8m0, and OCP's fp8 where it is not native.
#pragma once
#include "common/convert.h"
#include "common/scaled_instructions.h"

namespace kiln {
namespace detail {

// ---- e8m0: the power of two at or below |x|, at least 2^-127; NaN for NaN and infinity.
inline constexpr u32 exponent_bits = 0x7f800000u, min_power = 0x00400000u; // 2^-127 is denormal
KILN_DEVICE f32 power_below(f32 x) {
  const u32 bits = bit_cast<u32>(x) & exponent_bits;
  return platform::fma(x, 0.0f, bit_cast<f32>(platform::max(bits, min_power))); // x * 0 is NaN for NaN and infinity
}
template <class T> KILN_DEVICE f32 rounded_to_power(f32 x) { return power_below(x); }
template <int N> KILN_DEVICE Bytes<e8m0, N> pack_powers(Vec<f32, N> x) {
  Bytes<e8m0, N> bytes{};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const f32 each = x[i];
    bytes.word[i / 4] |= (bit_cast<u32>(each) >> 23 & 0xff) << (8 * (i % 4));
  }
  return bytes;
}
template <int N> KILN_DEVICE Vec<f32, N> unpack_powers(Bytes<e8m0, N> bytes) {
  Vec<f32, N> x;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const u32 bits = (bytes.word[i / 4] >> (8 * (i % 4)) & 0xff) << 23;
    x[i] = bit_cast<f32>(bits == exponent_bits ? 0x7fc00000u : bits ? bits : min_power);
  }
  return x;
}
// 1 / s of a power of two, exactly.
KILN_DEVICE f32 inverse_of_power(f32 s) {
  const u32 bits = 0x7f000000u - (bit_cast<u32>(s) & exponent_bits);
  return platform::fma(s, 0.0f, bit_cast<f32>(platform::max(bits, min_power)));
}
// 1 / (2 s) of a power of two up to 2^125, exactly.
KILN_DEVICE f32 inverse_of_double(f32 s) { return platform::fma(s, 0.0f, bit_cast<f32>(0x7e800000u - (bit_cast<u32>(s) & exponent_bits))); }

// ---- e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign.
// The code of a number. Adding 2^22 times the power of two at or below it, or 2^22, rounds to the unit of its binade, as those of f32 do;
// times 2^-126 the smallest number is a denormal of f32, as it is one of e2m1, so that the bits are the code.
KILN_DEVICE u32 code_of_e2m1(f32 x) {
  const f32 magnitude = platform::min(platform::abs(x), 6.0f); // NaN gives 6
  const u32 exponent = bit_cast<u32>(magnitude) & exponent_bits, one = 0x3f800000u;
  const f32 unit = bit_cast<f32>((exponent > one ? exponent : one) + (22u << 23));
  const f32 rounded = (magnitude + unit) - unit;
  return bit_cast<u32>(rounded * 0x1p-126f) >> 22 | (bit_cast<u32>(x) >> 28 & 8u);
}
template <int byte, int N> KILN_DEVICE void put_e2m1(Bytes<e2m1, N>& to, Vec<f32, N> x, f32 scale) {
  if constexpr (byte * 2 < N) {
    u32& word = to.word[byte / 4];
    word = platform::pack_scaled_e2m1<byte % 4>(x[2 * byte], x[2 * byte + 1 < N ? 2 * byte + 1 : 0], scale, word);
    put_e2m1<byte + 1>(to, x, scale);
  }
}
template <int N> KILN_DEVICE Bytes<e2m1, N> pack_scaled_e2m1(Vec<f32, N> x, f32 scale) {
  Bytes<e2m1, N> bytes;
#pragma unroll
  for (u32& word : bytes.word) word = platform::any_value();
  put_e2m1<0>(bytes, x, scale);
  return bytes;
}
template <int N> KILN_DEVICE Bytes<e2m1, N> pack_e2m1(Vec<f32, N> x) {
  if constexpr (has_scaled_convert) return pack_scaled_e2m1(x, 1.0f);
  Bytes<e2m1, N> bytes{};
#pragma unroll
  for (int i = 0; i < N; ++i) bytes.word[i / 8] |= code_of_e2m1(x[i]) << (4 * (i % 8));
  return bytes;
}
template <int byte, int N> KILN_DEVICE void take_e2m1(Vec<f32, N>& to, Bytes<e2m1, N> bytes, f32 scale) {
  if constexpr (byte * 2 < N) {
    constexpr bool inside = byte % 4 == 1 || byte % 4 == 2;
    const u32 word = bytes.word[byte / 4];
    const Vec<f32, 2> pair = platform::unpack_scaled_e2m1<byte % 4 < 2 ? 0 : 3>(inside ? platform::middle_bytes(word) : word, scale);
    to[2 * byte] = pair.x;
    if constexpr (2 * byte + 1 < N) to[2 * byte + 1] = pair.y;
    take_e2m1<byte + 1>(to, bytes, scale);
  }
}
template <int N> KILN_DEVICE Vec<f32, N> unpack_scaled_e2m1(Bytes<e2m1, N> bytes, f32 scale) {
  Vec<f32, N> x;
  take_e2m1<0>(x, bytes, scale);
  return x;
}
template <int N> KILN_DEVICE Vec<f32, N> unpack_e2m1(Bytes<e2m1, N> bytes) {
  if constexpr (has_scaled_convert) return unpack_scaled_e2m1(bytes, 1.0f);
  Vec<f32, N> x;
#pragma unroll
  for (int i = 0; i < N; ++i) { // the code as the bits of an f32 is the number times 2^-126
    const u32 code = bytes.word[i / 8] >> (4 * (i % 8));
    x[i] = bit_cast<f32>((code & 7u) << 22 | (code & 8u) << 28) * 0x1p126f;
  }
  return x;
}

// ---- OCP's fp8 on a target whose own has a bias one higher: the same bits are half of the number there, but for zeros and the top codes.
// Numbers to codes, given half of each. Beyond the largest finite number: that one; NaN stays NaN. An infinity, unless there is none,
// becomes NaN of e4m3, and that of e5m2.
template <class T, bool e4m3, bool infinities, int N> KILN_DEVICE Bytes<T, N> pack_ocp_fp8(Vec<f32, N> half) {
  // A median of three that has NaN is the least of the others: all bits of e4m3fnuz, whose lower 7 are OCP's NaN; and one such of e5m2fnuz.
  constexpr f32 nan = e4m3 ? -240.0f : -49152.0f, most = e4m3 ? 224.0f : 28672.0f, infinity_of_e5m2 = 32768.0f;
  if constexpr (infinities && e4m3) half = platform::fma(half, Vec<f32, N>(0.0f), half);
  Bytes<T, N> bytes;
#pragma unroll
  for (int w = 0; w < Bytes<T, N>::words; ++w) {
    f32 limited[4];
    u32 sign[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const f32 each = half[4 * w + i < N ? 4 * w + i : 0], magnitude = platform::abs(each);
      limited[i] = platform::median(magnitude, nan, most);
      if constexpr (infinities && !e4m3) limited[i] = magnitude == platform::infinity ? infinity_of_e5m2 : limited[i];
      sign[i] = bit_cast<u32>(each);
    }
    u32 word = platform::any_value();
    if constexpr (e4m3) word = platform::pack_e4m3<true>(limited[2], limited[3], platform::pack_e4m3<false>(limited[0], limited[1], word));
    else word = platform::pack_e5m2<true>(limited[2], limited[3], platform::pack_e5m2<false>(limited[0], limited[1], word));
    const u32 low = platform::permute_bytes(sign[1], sign[0], 0x0c0c0703u), high = platform::permute_bytes(sign[3], sign[2], 0x0c0c0703u);
    bytes.word[w] = (word & 0x7f7f7f7fu) | ((high << 16 | low) & 0x80808080u);
  }
  return bytes;
}
template <bool e4m3, class T, int N> KILN_DEVICE Vec<f32, N> unpack_ocp_fp8(Bytes<T, N> bytes) {
  Vec<f32, N> x;
#pragma unroll
  for (int i = 0; i < N; ++i) { // e5m2 is the upper half of f16; e4m3 has one exponent bit less, and its bias is 8 lower
    const u32 byte = bytes.word[i / 4] >> (8 * (i % 4)) & 0xff;
    if constexpr (!e4m3) {
      x[i] = static_cast<f32>(bit_cast<f16>(static_cast<u16>(byte << 8)));
    } else {
      const f32 number = static_cast<f32>(bit_cast<f16>(static_cast<u16>((byte & 0x80) << 8 | (byte & 0x7f) << 7))) * 256.0f;
      x[i] = platform::abs(number) > 448.0f ? platform::nan : number;
    }
  }
  return x;
}

} // namespace detail
} // namespace kiln
