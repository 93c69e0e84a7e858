// Matrix instructions on what a lane loads with 16-byte accesses: the products of `edge` (16 or 32) rows of two matrices along k.
//
// Both operands lie in memory with k contiguous. Lane l holds 16 bytes of row l % edge, at byte 16 * (l / edge) of a piece of
// k: 64 bytes for an edge of 16, 32 for one of 32; the second half of wider elements follows in further 16-byte words. The
// instructions want other k in a lane, but any order of k does as long as both operands have the same: this is how every lane
// loads 16 contiguous bytes.
#pragma once
#include "common/convert.h"

namespace kiln {

using Word16 = Vec<u32, 4>; // what one load brings a lane

// What a lane has of an edge x edge tile of sums of T's products.
template <class T, int edge> struct SumsOf { using type = Vec<f32, edge * edge / wave_size>; };
template <int edge> struct SumsOf<i8, edge> { using type = Vec<i32, edge * edge / wave_size>; };

namespace detail {

KILN_DEVICE i64 half_word(Word16 w, int half) {
  const Vec<u32, 2> two = {w[2 * half], w[2 * half + 1]};
  return __builtin_bit_cast(i64, two);
}
template <class T> KILN_DEVICE Vec<T, 4> four_of(Word16 w, int half) {
  const Vec<u32, 2> two = {w[2 * half], w[2 * half + 1]};
  return __builtin_bit_cast(Vec<T, 4>, two);
}

template <int edge, class X, class Y, class S> KILN_DEVICE S mfma_fp8(i64 x, i64 y, S sums) {
  constexpr bool xe4 = Fp8<X>::e4m3, ye4 = Fp8<Y>::e4m3;
  if constexpr (edge == 16) {
    if constexpr (xe4 && ye4) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, sums, 0, 0, 0);
    else if constexpr (xe4) return __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(x, y, sums, 0, 0, 0);
    else if constexpr (ye4) return __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(x, y, sums, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(x, y, sums, 0, 0, 0);
  } else {
    if constexpr (xe4 && ye4) return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, sums, 0, 0, 0);
    else if constexpr (xe4) return __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(x, y, sums, 0, 0, 0);
    else if constexpr (ye4) return __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8(x, y, sums, 0, 0, 0);
    else return __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(x, y, sums, 0, 0, 0);
  }
}
#if defined(__gfx950__)
// A whole 16-byte word of both, in one instruction.
template <int edge, class X, class S> KILN_DEVICE S mfma_word(Word16 x, Word16 y, S sums) {
  using Integers = Vec<i32, 4>;
  using Halves = Vec<f16, 8>;
  using BHalves = Vec<bf16, 8>;
  constexpr bool small = edge == 16;
  if constexpr (__is_same(X, i8) && small)
    return __builtin_amdgcn_mfma_i32_16x16x64_i8(__builtin_bit_cast(Integers, x), __builtin_bit_cast(Integers, y), sums, 0, 0, 0);
  else if constexpr (__is_same(X, i8))
    return __builtin_amdgcn_mfma_i32_32x32x32_i8(__builtin_bit_cast(Integers, x), __builtin_bit_cast(Integers, y), sums, 0, 0, 0);
  else if constexpr (__is_same(X, f16) && small)
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(__builtin_bit_cast(Halves, x), __builtin_bit_cast(Halves, y), sums, 0, 0, 0);
  else if constexpr (__is_same(X, f16))
    return __builtin_amdgcn_mfma_f32_32x32x16_f16(__builtin_bit_cast(Halves, x), __builtin_bit_cast(Halves, y), sums, 0, 0, 0);
  else if constexpr (small)
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(BHalves, x), __builtin_bit_cast(BHalves, y), sums, 0, 0, 0);
  else
    return __builtin_amdgcn_mfma_f32_32x32x16_bf16(__builtin_bit_cast(BHalves, x), __builtin_bit_cast(BHalves, y), sums, 0, 0, 0);
}
#else
// One half of a 16-byte word of both.
template <int edge, class X, class S> KILN_DEVICE S mfma_half(Word16 x, Word16 y, int half, S sums) {
  constexpr bool small = edge == 16;
  if constexpr (__is_same(X, i8) && small)
    return __builtin_amdgcn_mfma_i32_16x16x32_i8(half_word(x, half), half_word(y, half), sums, 0, 0, 0);
  else if constexpr (__is_same(X, i8))
    return __builtin_amdgcn_mfma_i32_32x32x16_i8(half_word(x, half), half_word(y, half), sums, 0, 0, 0);
  else if constexpr (__is_same(X, f16) && small)
    return __builtin_amdgcn_mfma_f32_16x16x16f16(four_of<f16>(x, half), four_of<f16>(y, half), sums, 0, 0, 0);
  else if constexpr (__is_same(X, f16))
    return __builtin_amdgcn_mfma_f32_32x32x8f16(four_of<f16>(x, half), four_of<f16>(y, half), sums, 0, 0, 0);
  else if constexpr (small)
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(four_of<short>(x, half), four_of<short>(y, half), sums, 0, 0, 0);
  else
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(four_of<short>(x, half), four_of<short>(y, half), sums, 0, 0, 0);
}
#endif

template <class X, class Y> KILN_DEVICE Vec<f32, 4> smfmac_fp8(Vec<i32, 2> x, Vec<i32, 4> y, Vec<f32, 4> sums, int pairs) {
  constexpr bool xe4 = Fp8<X>::e4m3, ye4 = Fp8<Y>::e4m3;
  if constexpr (xe4 && ye4) return __builtin_amdgcn_smfmac_f32_16x16x64_fp8_fp8(x, y, sums, pairs, 0, 0);
  else if constexpr (xe4) return __builtin_amdgcn_smfmac_f32_16x16x64_fp8_bf8(x, y, sums, pairs, 0, 0);
  else if constexpr (ye4) return __builtin_amdgcn_smfmac_f32_16x16x64_bf8_fp8(x, y, sums, pairs, 0, 0);
  else return __builtin_amdgcn_smfmac_f32_16x16x64_bf8_bf8(x, y, sums, pairs, 0, 0);
}

} // namespace detail

// sums[row of X][row of Y] += X * Y^T over the bytes of k that the lanes hold, for X and Y of one size.
// D of the instruction: lane l has row l % edge of Y; its element i is row 8 * (i / 4) + 4 * (l / edge) + i % 4 of X for an
// edge of 32, and row 4 * (l / edge) + i for one of 16.
template <int edge, class X, class Y, class S> KILN_DEVICE S multiply(Word16 x, Word16 y, S sums) {
  using namespace detail;
  static_assert(sizeof(X) == sizeof(Y));
  if constexpr (is_fp8<X>) {
    sums = mfma_fp8<edge, X, Y>(half_word(x, 0), half_word(y, 0), sums);
    return mfma_fp8<edge, X, Y>(half_word(x, 1), half_word(y, 1), sums);
  } else {
    static_assert(__is_same(X, Y) && (__is_same(X, i8) || __is_same(X, f16) || __is_same(X, bf16)));
#if defined(__gfx950__)
    return mfma_word<edge, X>(x, y, sums);
#else
    return mfma_half<edge, X>(x, y, 1, mfma_half<edge, X>(x, y, 0, sums));
#endif
  }
}

#if defined(__gfx950__)
// The same over two words a lane, for fp8: one instruction, at twice the rate of the others.
template <int edge, class X, class Y, class S> KILN_DEVICE S multiply_pair(Word16 x0, Word16 x1, Word16 y0, Word16 y1, S sums) {
  const auto eight = [](Word16 a, Word16 b) KILN_LAMBDA {
    return Vec<i32, 8>{static_cast<i32>(a[0]), static_cast<i32>(a[1]), static_cast<i32>(a[2]), static_cast<i32>(a[3]),
                       static_cast<i32>(b[0]), static_cast<i32>(b[1]), static_cast<i32>(b[2]), static_cast<i32>(b[3])};
  };
  constexpr int format_x = Fp8<X>::e4m3 ? 0 : 1, format_y = Fp8<Y>::e4m3 ? 0 : 1; // cbsz and blgp
  if constexpr (edge == 16)
    return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(eight(x0, x1), eight(y0, y1), sums, format_x, format_y, 0, 0, 0, 0);
  else
    return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(eight(x0, x1), eight(y0, y1), sums, format_x, format_y, 0, 0, 0, 0);
}
#endif

// The sparse form: each row of A counts as two rows of the instruction, of which the even one has the elements 0 and 1 of
// every four along k and the odd one 2 and 3. Lane l has the row (l % 16) / 2 of A. D: lane l has the instruction's rows
// 4 * (l / 16) + 0..3, which are both halves of the rows 2 * (l / 16) and 2 * (l / 16) + 1 of A, and row l % 16 of B.
struct SparseRow {
  bool odd;
  int pairs; // the instruction's indices: two bits an element that is there
  KILN_MEMBER explicit SparseRow(u32 lane) : odd(lane % 2), pairs(lane % 2 ? static_cast<int>(0xeeeeeeee) : 0x44444444) {}

  // The elements of `word` that this lane's row of the instruction has.
  template <class A> KILN_MEMBER Vec<i32, 2> half_of(Word16 word) const {
    Vec<i32, 2> half;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (sizeof(A) == 1)
        half[i] = static_cast<i32>(__builtin_amdgcn_perm(word[2 * i + 1], word[2 * i], odd ? 0x07060302u : 0x05040100u));
      else
        half[i] = static_cast<i32>(odd ? word[2 * i + 1] : word[2 * i]);
    }
    return half;
  }
};

template <class A, class B, class S> KILN_DEVICE S multiply_sparse(Vec<i32, 2> a, int pairs, Word16 b, S sums) {
  using namespace detail;
  using Words = Vec<i32, 4>;
  const auto words = __builtin_bit_cast(Words, b);
  if constexpr (is_fp8<A>) return smfmac_fp8<A, B>(a, words, sums, pairs);
  else if constexpr (__is_same(A, i8)) return __builtin_amdgcn_smfmac_i32_16x16x64_i8(a, words, sums, pairs, 0, 0);
  else if constexpr (__is_same(A, f16))
    return __builtin_amdgcn_smfmac_f32_16x16x32_f16(__builtin_bit_cast(Vec<f16, 4>, a), __builtin_bit_cast(Vec<f16, 8>, b), sums, pairs, 0, 0);
  else
    return __builtin_amdgcn_smfmac_f32_16x16x32_bf16(__builtin_bit_cast(Vec<short, 4>, a), __builtin_bit_cast(Vec<short, 8>, b), sums, pairs, 0, 0);
}

} // namespace kiln
