// Instructions that convert with a scale, as functions.
#pragma once
#include "common/instructions.h"

namespace kiln::platform {

// Conversions with a scale, of which the exponent counts: x / scale to two numbers of `old`, rounded to nearest even, and back.
// e2m1 saturates; fp8 overflows to NaN or infinity. `part` is a byte of e2m1, a half of fp8. Bytes 1 and 2
// of e2m1 are not read: clang 21 takes each for the other, clang 22 does not. middle_bytes puts them to 0 and 3.
KILN_DEVICE u32 middle_bytes(u32 word) { return permute_bytes(word, word, 0x020c0c01u); }
#if defined(__gfx950__)
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
template <int part> u32 pack_scaled_e2m1(f32 a, f32 b, f32 scale, u32 old) = delete;
template <int part> Vec<f32, 2> unpack_scaled_e2m1(u32 word, f32 scale) = delete;
template <class T, int part> Vec<T, 2> unpack_scaled_e2m1_as(u32 word, f32 scale) = delete;
template <bool e4m3, int part> u32 pack_scaled_fp8(f32 a, f32 b, f32 scale, u32 old) = delete;
template <bool e4m3, int part> Vec<f32, 2> unpack_scaled_fp8(u32 word, f32 scale) = delete;
#endif

} // namespace kiln::platform
