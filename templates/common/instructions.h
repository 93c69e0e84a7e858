// Instructions that compute, as functions: single numbers, dot products, bytes, conversions. platform.h, this and its two neighbours
// scaled_instructions.h and matrix_instructions.h are the places that spell compiler builtins.
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
KILN_DEVICE u32 leading_zeros(u32 x) { return static_cast<u32>(__builtin_clz(x)); } // not of 0
KILN_DEVICE u32 count_bits(u32 x) { return static_cast<u32>(__builtin_popcount(x)); }
KILN_DEVICE u32 max(u32 a, u32 b) { return __builtin_elementwise_max(a, b); }
// IEEE maximum of magnitudes: NaN wins.
#if defined(__gfx950__)
KILN_DEVICE f32 maximum(f32 a, f32 b) { return __builtin_elementwise_maximum(a, b); }
#else
KILN_DEVICE f32 maximum(f32 a, f32 b) { // numbers without a sign: their bits are in order
  return __builtin_bit_cast(f32, max(__builtin_bit_cast(u32, a), __builtin_bit_cast(u32, b)));
}
#endif
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

} // namespace kiln::platform
