// NVFP4: B of e2m1 with an e4m3fn scale for every 16 elements of k. The scale of the whole matrix is a factor of the epilogue.
#pragma once
#include "gemm/operands/groups.h"

namespace kiln {

// scale[row][k / 16]: two lie beside each other for the 32 elements of a word of 16 bytes, as one number without an alignment.
struct Nvfp4Scales {
  u8 of[2];
};
template <class B> struct Nvfp4Weights {
  const B* values;
  const Nvfp4Scales* scale;
};

namespace detail {

// e4m3fn bits are a number of f16 or f32 whose exponent is too small by the difference of the biases: 8, or 120.
KILN_DEVICE f16 e4m3fn_over_256(u8 bits) {
  const u32 magnitude = bits & 0x7fu;
  return bit_cast<f16>(static_cast<u16>((bits & 0x80u) << 8 | (magnitude == 0x7f ? 0x7e00u : magnitude << 7)));
}
KILN_DEVICE f32 e4m3fn_as_f32(u8 bits) {
  const u32 magnitude = bits & 0x7fu;
  return bit_cast<f32>((bits & 0x80u) << 24 | (magnitude == 0x7f ? 0x7fc00000u : magnitude << 20)) * 0x1p120f;
}

// Eight weights as A's type, exact: e2m1 times e4m3fn has six bits, and lies between 2^-10 and 2688.
template <class A> KILN_DEVICE Word16 unpack_nvfp4(u32 word, u8 scale) {
  Word16 result;
  if constexpr (__is_same(A, f16)) {
    using Halves = Vec<f16, 2>;
    const auto factor = Halves(e4m3fn_over_256(scale));
    // The upper byte of 256 times a number, looked up by its code; the lower one is 0.
    const u32 even = platform::permute_bytes(0x66646260u, 0x5e5c5800u, word & 0x07070707u) | (word & 0x08080808u) << 4;
    const u32 odd = platform::permute_bytes(0x66646260u, 0x5e5c5800u, word >> 4 & 0x07070707u) | (word & 0x80808080u);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) result[i] = bit_cast<u32>(bit_cast<Halves>(platform::permute_bytes(odd, even, 0x040c000cu + i * 0x01000100u)) * factor);
  } else {
    static_assert(__is_same(A, bf16));
    const f32 factor = e4m3fn_as_f32(scale);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 low = word >> (8 * i), high = word >> (8 * i + 4);
      const Vec<f32, 2> codes = {bit_cast<f32>((low & 7u) << 22 | (low & 8u) << 28), bit_cast<f32>((high & 7u) << 22 | (high & 8u) << 28)};
      const Vec<f32, 2> numbers = codes * Vec<f32, 2>(0x1p126f) * Vec<f32, 2>(factor); // a code as bits is the number times 2^-126
      const f32 x = numbers.x, y = numbers.y;
      result[i] = platform::permute_bytes(bit_cast<u32>(y), bit_cast<u32>(x), platform::upper_halves);
    }
  }
  return result;
}

} // namespace detail

template <GemmConfig config> struct Nvfp4Words : WordScales<config, Nvfp4Scales> {
  template <class A, class B> KILN_MEMBER Word16 b_word(const Word16& loaded, int p, int i, int u, int w) const {
    return detail::unpack_nvfp4<A>(loaded[w], this->scale[p][i][u].of[w / 2]);
  }
  template <class A> KILN_DEVICE Word16 a_word(const Word16& loaded) { return loaded; }
};

} // namespace kiln
