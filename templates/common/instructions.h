// Instructions that compute, as functions: single numbers, dot products, bytes, conversions with and without a scale, matrices. Beside
// platform.h the one place that spells compiler builtins.
#pragma once
#include "common/platform.h"

namespace kiln::platform {

// Single instructions. Bounds as documented for the instruction: 1 ulp, results below 2^-126 are flushed to 0.
KILN_DEVICE f32 exp2(f32 x) { return __builtin_amdgcn_exp2f(x); }
KILN_DEVICE f32 log2(f32 x) { return __builtin_amdgcn_logf(x); }
KILN_DEVICE f32 rcp(f32 x) { return __builtin_amdgcn_rcpf(x); }
KILN_DEVICE f32 rsqrt(f32 x) { return __builtin_amdgcn_rsqf(x); }
KILN_DEVICE f32 sqrt(f32 x) { return __builtin_amdgcn_sqrtf(x); }
// sin and cos of `x` turns, for |x| <= 256.
KILN_DEVICE f32 sin_turns(f32 x) { return __builtin_amdgcn_sinf(x); }
KILN_DEVICE f32 cos_turns(f32 x) { return __builtin_amdgcn_cosf(x); }
KILN_DEVICE f32 fract(f32 x) { return __builtin_amdgcn_fractf(x); }
// A comparison and a choice of what are f32 elsewhere become those of f32 again, two instructions; the builtin stays one.
KILN_DEVICE u32 max(u32 a, u32 b) { return __builtin_elementwise_max(a, b); }
KILN_DEVICE f32 median(f32 a, f32 b, f32 c) { return __builtin_amdgcn_fmed3f(a, b, c); }

// a.x * b.x + a.y * b.y + c in f32; dot4 of four bytes, in i32.
KILN_DEVICE f32 dot2(Vec<f16, 2> a, Vec<f16, 2> b, f32 c) { return __builtin_amdgcn_fdot2(a, b, c, false); }
#if defined(__gfx950__)
KILN_DEVICE f32 dot2(Vec<bf16, 2> a, Vec<bf16, 2> b, f32 c) { return __builtin_amdgcn_fdot2_f32_bf16(a, b, c, false); }
#endif
KILN_DEVICE i32 dot4(u32 a, u32 b, i32 c) { return __builtin_amdgcn_sdot4(static_cast<i32>(a), static_cast<i32>(b), c, false); }

// Bytes of the eight in {high, low}, chosen by the bytes of `which`: 0 is the lowest of `low`.
inline constexpr u32 lower_halves = 0x05040100, upper_halves = 0x07060302; // the 16-bit halves of `high` and of `low`
KILN_DEVICE u32 permute_bytes(u32 high, u32 low, u32 which) { return __builtin_amdgcn_perm(high, low, which); }
// Two f32 to two f16, rounded toward zero.
KILN_DEVICE u32 pack_f16(f32 a, f32 b) { return __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(a, b)); }
// Two f32 to two fp8 bytes in the low or high half of `old`, and back. The bytes are of the target's own flavour.
template <bool high> KILN_DEVICE u32 pack_e4m3(f32 a, f32 b, u32 old) {
  return static_cast<u32>(__builtin_amdgcn_cvt_pk_fp8_f32(a, b, static_cast<int>(old), high));
}
template <bool high> KILN_DEVICE u32 pack_e5m2(f32 a, f32 b, u32 old) {
  return static_cast<u32>(__builtin_amdgcn_cvt_pk_bf8_f32(a, b, static_cast<int>(old), high));
}
template <bool high> KILN_DEVICE Vec<f32, 2> unpack_e4m3(u32 bytes) {
  return __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(bytes), high);
}
template <bool high> KILN_DEVICE Vec<f32, 2> unpack_e5m2(u32 bytes) {
  return __builtin_amdgcn_cvt_pk_f32_bf8(static_cast<int>(bytes), high);
}

// Conversions with a scale, of which the exponent counts: x / scale to two numbers of `old`, rounded to nearest even, and back.
// e2m1 saturates; fp8 overflows to NaN or infinity. `part` is a byte of e2m1, a half of fp8. Bytes 1 and 2
// of e2m1 are not read: clang 21 takes each for the other, clang 22 does not. middle_bytes puts them to 0 and 3.
KILN_DEVICE u32 middle_bytes(u32 word) { return permute_bytes(word, word, 0x020c0c01u); }
#if defined(__gfx950__)
KILN_DEVICE f32 maximum(f32 a, f32 b) { return __builtin_elementwise_maximum(a, b); } // IEEE maximum: NaN wins
template <int part> KILN_DEVICE u32 pack_scaled_e2m1(f32 a, f32 b, f32 scale, u32 old) {
  u32 word = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(old, a, b, scale, part);
  if constexpr (part == 0) asm("s_nop 0" : "+v"(word)); // a wait state behind a part of a register, which LLVM leaves for other parts
  return word;
}
template <int part> requires(part % 3 == 0) KILN_DEVICE Vec<f32, 2> unpack_scaled_e2m1(u32 word, f32 scale) {
  return __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(word, scale, part);
}
template <class T, int part> requires(part % 3 == 0) KILN_DEVICE Vec<T, 2> unpack_scaled_e2m1_as(u32 word, f32 scale) {
  if constexpr (__is_same(T, f16)) return __builtin_amdgcn_cvt_scalef32_pk_f16_fp4(word, scale, part);
  else return __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(word, scale, part);
}
template <bool e4m3, int part> KILN_DEVICE u32 pack_scaled_fp8(f32 a, f32 b, f32 scale, u32 old) {
  const auto halves = __builtin_bit_cast(Vec<short, 2>, old);
  if constexpr (e4m3) return __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(halves, a, b, scale, part));
  else return __builtin_bit_cast(u32, __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(halves, a, b, scale, part));
}
template <bool e4m3, int part> KILN_DEVICE Vec<f32, 2> unpack_scaled_fp8(u32 word, f32 scale) {
  if constexpr (e4m3) return __builtin_amdgcn_cvt_scalef32_pk_f32_fp8(word, scale, part);
  else return __builtin_amdgcn_cvt_scalef32_pk_f32_bf8(word, scale, part);
}
#else
KILN_DEVICE f32 maximum(f32 a, f32 b) { // of numbers without a sign, whose bits are in order
  return __builtin_bit_cast(f32, max(__builtin_bit_cast(u32, a), __builtin_bit_cast(u32, b)));
}
template <int part> u32 pack_scaled_e2m1(f32 a, f32 b, f32 scale, u32 old) = delete;
template <int part> Vec<f32, 2> unpack_scaled_e2m1(u32 word, f32 scale) = delete;
template <class T, int part> Vec<T, 2> unpack_scaled_e2m1_as(u32 word, f32 scale) = delete;
template <bool e4m3, int part> u32 pack_scaled_fp8(f32 a, f32 b, f32 scale, u32 old) = delete;
template <bool e4m3, int part> Vec<f32, 2> unpack_scaled_fp8(u32 word, f32 scale) = delete;
#endif

// Matrix instructions: sums + X * Y^T over k, for `edge` (16 or 32) rows of each. What lane holds what: common/matrix.h.
template <int edge, bool x_is_e4m3, bool y_is_e4m3, class S> KILN_DEVICE S mfma_fp8(i64 x, i64 y, S sums) {
  if constexpr (edge == 16) {
    if constexpr (x_is_e4m3 && y_is_e4m3) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, sums, 0, 0, 0);
    else if constexpr (x_is_e4m3) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(x, y, sums, 0, 0, 0);
    else if constexpr (y_is_e4m3) return __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(x, y, sums, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(x, y, sums, 0, 0, 0);
  } else {
    if constexpr (x_is_e4m3 && y_is_e4m3) return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, sums, 0, 0, 0);
    else if constexpr (x_is_e4m3) return __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(x, y, sums, 0, 0, 0);
    else if constexpr (y_is_e4m3) return __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8(x, y, sums, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(x, y, sums, 0, 0, 0);
  }
}
// f32 products, which are exact until they are added; a lane gives one number of each operand.
template <int edge, class S> KILN_DEVICE S mfma(f32 x, f32 y, S sums) {
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_f32_16x16x4f32(x, y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_f32_32x32x2f32(x, y, sums, 0, 0, 0);
}
#if defined(__gfx950__)
inline constexpr int mfma_bytes = 16; // of an operand that a lane holds, of the instructions below
template <int edge, class S> KILN_DEVICE S mfma(Vec<f16, 8> x, Vec<f16, 8> y, S sums) {
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_f32_16x16x32_f16(x, y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_f32_32x32x16_f16(x, y, sums, 0, 0, 0);
}
template <int edge, class S> KILN_DEVICE S mfma(Vec<bf16, 8> x, Vec<bf16, 8> y, S sums) {
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_f32_16x16x32_bf16(x, y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_f32_32x32x16_bf16(x, y, sums, 0, 0, 0);
}
template <int edge, class S> KILN_DEVICE S mfma(Vec<i8, 16> x, Vec<i8, 16> y, S sums) {
  const auto words_x = bit_cast<Vec<i32, 4>>(x), words_y = bit_cast<Vec<i32, 4>>(y);
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_i32_16x16x64_i8(words_x, words_y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_i32_32x32x32_i8(words_x, words_y, sums, 0, 0, 0);
}
// fp8 in 32 bytes a lane; the scales of the instruction are not used.
template <int edge, bool x_is_e4m3, bool y_is_e4m3, class S> KILN_DEVICE S mfma_wide_fp8(Vec<i32, 8> x, Vec<i32, 8> y, S sums) {
  constexpr int x_format = x_is_e4m3 ? 0 : 1, y_format = y_is_e4m3 ? 0 : 1; // cbsz and blgp
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, x_format, y_format, 0, 0, 0, 0);
  else return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x, y, sums, x_format, y_format, 0, 0, 0, 0);
}
// Formats 0 e4m3, 1 e5m2 and 4 e2m1, which has the first four registers alone. The lowest byte of a scale is the power of two, plus 127.
template <int x_format, int y_format> KILN_DEVICE Vec<f32, 4> mfma_mx(Vec<i32, 8> x, Vec<i32, 8> y, u32 x_scale, u32 y_scale, Vec<f32, 4> sums) {
  return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, sums, x_format, y_format, 0, static_cast<int>(x_scale), 0, static_cast<int>(y_scale));
}
#else
inline constexpr int mfma_bytes = 8;
template <int edge, class S> KILN_DEVICE S mfma(Vec<f16, 4> x, Vec<f16, 4> y, S sums) {
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, sums, 0, 0, 0);
}
template <int edge, class S> KILN_DEVICE S mfma(Vec<bf16, 4> x, Vec<bf16, 4> y, S sums) {
  const auto bits_x = bit_cast<Vec<short, 4>>(x), bits_y = bit_cast<Vec<short, 4>>(y);
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(bits_x, bits_y, sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(bits_x, bits_y, sums, 0, 0, 0);
}
template <int edge, class S> KILN_DEVICE S mfma(Vec<i8, 8> x, Vec<i8, 8> y, S sums) {
  if constexpr (edge == 16) return __builtin_amdgcn_mfma_i32_16x16x32_i8(bit_cast<i64>(x), bit_cast<i64>(y), sums, 0, 0, 0);
  else return __builtin_amdgcn_mfma_i32_32x32x16_i8(bit_cast<i64>(x), bit_cast<i64>(y), sums, 0, 0, 0);
}
template <int edge, bool x_is_e4m3, bool y_is_e4m3, class S> S mfma_wide_fp8(Vec<i32, 8> x, Vec<i32, 8> y, S sums) = delete;
template <int x_format, int y_format> Vec<f32, 4> mfma_mx(Vec<i32, 8> x, Vec<i32, 8> y, u32 x_scale, u32 y_scale, Vec<f32, 4> sums) = delete;
#endif

// Sparse ones, of 16 x 16: x has two of every four elements along k, and `pairs` says which.
KILN_DEVICE Vec<f32, 4> smfmac(Vec<f16, 4> x, Vec<f16, 8> y, Vec<f32, 4> sums, int pairs) {
  return __builtin_amdgcn_smfmac_f32_16x16x32_f16(x, y, sums, pairs, 0, 0);
}
KILN_DEVICE Vec<f32, 4> smfmac(Vec<bf16, 4> x, Vec<bf16, 8> y, Vec<f32, 4> sums, int pairs) {
  return __builtin_amdgcn_smfmac_f32_16x16x32_bf16(bit_cast<Vec<short, 4>>(x), bit_cast<Vec<short, 8>>(y), sums, pairs, 0, 0);
}
KILN_DEVICE Vec<i32, 4> smfmac(Vec<i8, 8> x, Vec<i8, 16> y, Vec<i32, 4> sums, int pairs) {
  return __builtin_amdgcn_smfmac_i32_16x16x64_i8(bit_cast<Vec<i32, 2>>(x), bit_cast<Vec<i32, 4>>(y), sums, pairs, 0, 0);
}
template <bool x_is_e4m3, bool y_is_e4m3> KILN_DEVICE Vec<f32, 4> smfmac_fp8(Vec<i32, 2> x, Vec<i32, 4> y, Vec<f32, 4> sums, int pairs) {
  if constexpr (x_is_e4m3 && y_is_e4m3) return __builtin_amdgcn_smfmac_f32_16x16x64_fp8_fp8(x, y, sums, pairs, 0, 0);
  else if constexpr (x_is_e4m3) return __builtin_amdgcn_smfmac_f32_16x16x64_fp8_bf8(x, y, sums, pairs, 0, 0);
  else if constexpr (y_is_e4m3) return __builtin_amdgcn_smfmac_f32_16x16x64_bf8_fp8(x, y, sums, pairs, 0, 0);
  else return __builtin_amdgcn_smfmac_f32_16x16x64_bf8_bf8(x, y, sums, pairs, 0, 0);
}

} // namespace kiln::platform
