// Matrix instructions, as functions.
#pragma once
#include "common/instructions.h"

namespace kiln::platform {

// Wait states that software leaves between a matrix instruction of `passes` passes (of 4 clocks) and an instruction that reads or
// overwrites its result: LLVM's GCNHazardRecognizer.cpp, GFX940_XDL_N_PassWriteVgprVALUMemExpReadWaitStates and GFX950's. 8 passes
// and more; tests/compile/target_tables.cpp compares them with isa_checks' table.
constexpr int matrix_wait_states(int passes) { return passes + (has_doubled_mfma ? 4 : 3); }
template <int states> KILN_DEVICE void wait_states() { // s_nop N is N + 1 of them, up to 16
  asm volatile("s_nop %0" : : "n"(states - 1));
}
// Stands between the last matrix instruction and what reads its result or reuses its registers. LLVM 21 leaves too few wait states
// if paths of different lengths lead from the one to the other: it looks at one of them. The longest instructions have 8 passes for
// 16 x 16 tiles and 16 passes for 32 x 32.
template <int edge> KILN_DEVICE void await_mfma_results() {
  schedule_barrier();
  wait_states<matrix_wait_states(8)>();
  if constexpr (edge == 32) wait_states<matrix_wait_states(16) - matrix_wait_states(8)>();
  schedule_barrier();
}

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
// fp8 in 32 bytes per lane; the scales of the instruction are not used.
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
