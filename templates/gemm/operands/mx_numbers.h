// Numbers of MX formats: eight e2m1 weights of a block as A's type, rounded products with the block's scale, in the order of k; operands of
// which both have scales; rows that are quantised before they are multiplied.
#pragma once
#include "common/matrix.h"

namespace kiln {
namespace detail {

// Eight numbers of e2m1 as f16 times each factor, and as bf16 times one, which holds the product: the upper half of it in f32.
// The upper byte of a number in f16 is looked up by its code in `bytes`; the lower one is 0. A code as bits of f32 is the number times 2^-126.
using Halves = Vec<f16, 2>;
template <class... Factors> KILN_DEVICE Word16 unpack_e2m1_f16(u32 word, u64 bytes, Factors... factors) {
  const u32 upper = bytes >> 32, lower = static_cast<u32>(bytes);
  const u32 even = platform::permute_bytes(upper, lower, word & 0x07070707u) | (word & 0x08080808u) << 4;
  const u32 odd = platform::permute_bytes(upper, lower, word >> 4 & 0x07070707u) | (word & 0x80808080u);
  Word16 result;
#pragma unroll
  for (u32 i = 0; i < 4; ++i)
    result[i] = bit_cast<u32>((bit_cast<Halves>(platform::permute_bytes(odd, even, 0x040c000cu + i * 0x01000100u)) * ... * factors));
  return result;
}
KILN_DEVICE Word16 unpack_e2m1_bf16(u32 word, f32 factor) {
  Word16 result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 low = word >> (8 * i), high = word >> (8 * i + 4);
    const Vec<f32, 2> codes = {bit_cast<f32>((low & 7u) << 22 | (low & 8u) << 28), bit_cast<f32>((high & 7u) << 22 | (high & 8u) << 28)};
    const Vec<f32, 2> numbers = codes * Vec<f32, 2>(0x1p126f) * Vec<f32, 2>(factor);
    const f32 x = numbers.x, y = numbers.y;
    result[i] = platform::permute_bytes(bit_cast<u32>(y), bit_cast<u32>(x), platform::upper_halves);
  }
  return result;
}

// f16 without an instruction for it. The scale 2^e is a product of two numbers of f16: only the second product rounds, and any e beyond
// their range gives 0 or infinity as well.
KILN_DEVICE Word16 unpack_mx_f16(u32 word, u8 scale) {
  const auto clamped = [](i32 e) KILN_OWN_LINES { return e < -14 ? -14 : e > 15 ? 15 : e; };
  const i32 e = static_cast<i32>(scale) - 127, first = clamped(e), second = clamped(e - first);
  const u32 factor = scale == 0xff ? 0x7e00u : static_cast<u32>(first + 15) << 10;
  const auto one = Halves(bit_cast<f16>(static_cast<u16>(factor))), two = Halves(bit_cast<f16>(static_cast<u16>(static_cast<u32>(second + 15) << 10)));
  return unpack_e2m1_f16(word, 0x464442403e3c3800ull, one, two);
}

KILN_DEVICE Word16 unpack_mx_bf16(u32 word, u8 scale) {
  const u32 exponent = static_cast<u32>(scale) << 23;
  return unpack_e2m1_bf16(word, bit_cast<f32>(scale == 0xff ? 0x7fc00000u : scale ? exponent : 0x00400000u));
}

} // namespace detail

template <class A> KILN_DEVICE Word16 unpack_mx(u32 word, u8 scale) {
  if constexpr (has_scaled_convert) {
    const f32 power = bit_cast<f32>(static_cast<u32>(scale) << 23); // of which the exponent counts, 0 and 255 too
    const u32 inside = platform::middle_bytes(word);
    return {bit_cast<u32>(platform::unpack_scaled_e2m1_as<A, 0>(word, power)), bit_cast<u32>(platform::unpack_scaled_e2m1_as<A, 0>(inside, power)),
            bit_cast<u32>(platform::unpack_scaled_e2m1_as<A, 3>(inside, power)), bit_cast<u32>(platform::unpack_scaled_e2m1_as<A, 3>(word, power))};
  } else if constexpr (__is_same(A, f16)) {
    return detail::unpack_mx_f16(word, scale);
  } else {
    return detail::unpack_mx_bf16(word, scale);
  }
}

// Eight numbers of `word`, the `part`-th ones, times the block's scale, as bf16. f32 holds the products, and bf16 their upper halves.
template <class T> KILN_DEVICE Word16 mx_as_bf16(Word16 word, int part, u8 scale) {
  if constexpr (is_packed<T>) {
    return detail::unpack_mx_bf16(word[part], scale);
  } else {
    const f32 power = bit_cast<f32>(scale == 0xff ? 0x7fc00000u : scale ? static_cast<u32>(scale) << 23 : detail::min_power);
    const Vec<f32, 8> numbers = to<f32>(Bytes<T, 8>{{word[2 * part], word[2 * part + 1]}}) * Vec<f32, 8>(power);
    return detail::upper_halves_of(numbers);
  }
}

// sums + X * Y^T over 128 elements of k, each number times its block's scale, the lowest byte of a word. What was computed of these is to be
// pinned (pin_vgpr).
template <class T> inline constexpr int mx_format = Fp8<T>::e4m3 ? 0 : 1;
template <> inline constexpr int mx_format<e2m1> = 4;
template <class X, class Y> KILN_DEVICE Vec<f32, 4> multiply_mx(Vec<i32, 8> x, Vec<i32, 8> y, u32 x_scale, u32 y_scale, Vec<f32, 4> sums) {
  return platform::mfma_mx<mx_format<X>, mx_format<Y>>(x, y, x_scale, y_scale, sums);
}

// Sixteen numbers of A times `factor`, rounded to an fp8.
// Numbers times a factor, and the same times their weights, as bytes of B.
template <class B, class A, class... Weights> KILN_DEVICE Word16 quantised(Word16 low, Word16 high, f32 factor, Weights... weights) {
  Word16 result;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    Vec<f32, 8> numbers = convert<Vec<f32, 8>>(bit_cast<Vec<A, 8>>(half ? high : low)) * Vec<f32, 8>(factor);
    if constexpr (sizeof...(Weights) > 0) {
      const Word16 words[] = {weights...};
      numbers *= convert<Vec<f32, 8>>(bit_cast<Vec<A, 8>>(words[half]));
    }
    const Bytes<B, 8> bytes = to<B>(numbers);
    result[2 * half] = bytes.word[0];
    result[2 * half + 1] = bytes.word[1];
  }
  return result;
}

} // namespace kiln
