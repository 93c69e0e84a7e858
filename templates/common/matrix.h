// Matrix instructions on what a lane loads with 16-byte accesses: the products of `edge` (16 or 32) rows of two matrices along k.
//
// Both operands lie in memory with k contiguous. Lane l holds 16 bytes of row l % edge, at byte 16 * (l / edge) of a piece of
// k: 64 bytes for an edge of 16, 32 for one of 32; the second half of wider elements follows in further 16-byte words. The
// instructions want other k in a lane, but any order of k does as long as both operands have the same: this is how every lane
// loads 16 contiguous bytes.
#pragma once
#include "common/lane_instructions.h"
#include "common/matrix_instructions.h"
#include "common/memory_instructions.h"
#include "common/mx_convert.h"

namespace kiln {

using Word16 = Vec<u32, 4>; // what one load brings a lane

namespace detail {

// Eight numbers that are bf16 as they are: a bf16 is the upper half of an f32.
KILN_DEVICE Word16 upper_halves_of(const Vec<f32, 8>& numbers) {
  Word16 result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const f32 low = numbers[2 * i], high = numbers[2 * i + 1];
    result[i] = platform::permute_bytes(bit_cast<u32>(high), bit_cast<u32>(low), platform::upper_halves);
  }
  return result;
}

template <class A, class B> KILN_DEVICE Word16 widen_bytes(Word16 word, int part) {
  static_assert(sizeof(A) == 2 && sizeof(B) == 1);
  const Bytes<B, 8> eight = {{word[2 * part], word[2 * part + 1]}};
  const Vec<f32, 8> numbers = to<f32>(eight);
  if constexpr (__is_same(A, f16)) {
    Word16 result;
#pragma unroll
    for (int i = 0; i < 4; ++i) result[i] = platform::pack_f16(numbers[2 * i], numbers[2 * i + 1]);
    return result;
  } else { // every fp8 and i8 number is a bf16: its upper half as it is
    return upper_halves_of(numbers);
  }
}

} // namespace detail

// Converts a word of 8-bit elements to two words of a 16-bit type, or of a 16-bit type to two of f32, exactly. `part` is 0 or 1: the
// elements of that half.
template <class A, class B> KILN_DEVICE Word16 widen(Word16 word, int part) {
  if constexpr (__is_same(A, f32)) {
    static_assert(sizeof(B) == 2);
    return bit_cast<Word16>(convert<Vec<f32, 4>>(bit_cast<Vec<B, 4>>(Vec<u32, 2>{word[2 * part], word[2 * part + 1]})));
  } else {
    return detail::widen_bytes<A, B>(word, part);
  }
}

// What a lane has of an edge x edge tile of sums of T's products.
template <class T, int edge> struct SumsOf { using type = Vec<f32, edge * edge / wave_size>; };
template <int edge> struct SumsOf<i8, edge> { using type = Vec<i32, edge * edge / wave_size>; };

namespace detail {

// Half 0 or 1 of a word.
KILN_DEVICE Vec<u32, 2> half_of(Word16 w, int half) { return {w[2 * half], w[2 * half + 1]}; }

// T is not an fp8: one instruction for the word, or one for each half.
template <int edge, class T, class S> KILN_DEVICE S mfma_word(Word16 x, Word16 y, S sums) {
  constexpr int elements = platform::mfma_bytes / static_cast<int>(sizeof(T));
  if constexpr (platform::mfma_bytes == 16) {
    return platform::mfma<edge>(bit_cast<Vec<T, elements>>(x), bit_cast<Vec<T, elements>>(y), sums);
  } else {
    using V = Vec<T, elements>;
    sums = platform::mfma<edge>(bit_cast<V>(half_of(x, 0)), bit_cast<V>(half_of(y, 0)), sums);
    return platform::mfma<edge>(bit_cast<V>(half_of(x, 1)), bit_cast<V>(half_of(y, 1)), sums);
  }
}

} // namespace detail

// sums[row of X][row of Y] += X * Y^T over the bytes of k that the lanes hold, for X and Y of one size.
// D of the instruction: lane l has row l % edge of Y; its element i is row 8 * (i / 4) + 4 * (l / edge) + i % 4 of X for an
// edge of 32, and row 4 * (l / edge) + i for one of 16.
template <int edge, class X, class Y, class S> KILN_DEVICE S multiply(Word16 x, Word16 y, S sums) {
  static_assert(sizeof(X) == sizeof(Y));
  if constexpr (is_fp8<X>) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      sums = platform::mfma_fp8<edge, Fp8<X>::e4m3, Fp8<Y>::e4m3>(bit_cast<i64>(detail::half_of(x, half)), bit_cast<i64>(detail::half_of(y, half)), sums);
    return sums;
  } else if constexpr (__is_same(X, f32)) {
    static_assert(__is_same(Y, f32));
    const auto numbers_x = bit_cast<Vec<f32, 4>>(x), numbers_y = bit_cast<Vec<f32, 4>>(y);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums = platform::mfma<edge>(numbers_x[i], numbers_y[i], sums);
    return sums;
  } else {
    static_assert(__is_same(X, Y) && (__is_same(X, i8) || __is_same(X, f16) || __is_same(X, bf16)));
    return detail::mfma_word<edge, X>(x, y, sums);
  }
}

KILN_DEVICE Vec<i32, 8> pair_of_words(Word16 a, Word16 b) {
  return {static_cast<i32>(a[0]), static_cast<i32>(a[1]), static_cast<i32>(a[2]), static_cast<i32>(a[3]),
          static_cast<i32>(b[0]), static_cast<i32>(b[1]), static_cast<i32>(b[2]), static_cast<i32>(b[3])};
}

// The same over two words per lane, for fp8 with has_scaled_mfma: one instruction, at twice the rate of the others.
template <int edge, class X, class Y, class S> KILN_DEVICE S multiply_pair(Word16 x0, Word16 x1, Word16 y0, Word16 y1, S sums) {
  return platform::mfma_wide_fp8<edge, Fp8<X>::e4m3, Fp8<Y>::e4m3>(pair_of_words(x0, x1), pair_of_words(y0, y1), sums);
}

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
        half[i] = static_cast<i32>(platform::permute_bytes(word[2 * i + 1], word[2 * i], odd ? platform::upper_halves : platform::lower_halves));
      else
        half[i] = static_cast<i32>(odd ? word[2 * i + 1] : word[2 * i]);
    }
    return half;
  }
};

template <class A, class B, class S> KILN_DEVICE S multiply_sparse(Vec<i32, 2> a, int pairs, Word16 b, S sums) {
  constexpr int size = sizeof(A);
  if constexpr (is_fp8<A>) return platform::smfmac_fp8<Fp8<A>::e4m3, Fp8<B>::e4m3>(a, bit_cast<Vec<i32, 4>>(b), sums, pairs);
  else return platform::smfmac(bit_cast<Vec<A, 8 / size>>(a), bit_cast<Vec<A, 16 / size>>(b), sums, pairs);
}

// `x` in both registers of a pair. Packed f32 arithmetic can take one register for both halves, but its operand is a pair: it would
// wait for a load into the other register.
KILN_DEVICE Vec<f32, 2> pair_of(f32 x) { return platform::opaque_registers(Vec<f32, 2>(x)); }
template <class V> KILN_DEVICE V all_of(f32 x) {
  const Vec<f32, 2> pair = pair_of(x);
  V all;
#pragma unroll
  for (int i = 0; i < width<V>; ++i) all[i] = pair[i % 2];
  return all;
}

} // namespace kiln
