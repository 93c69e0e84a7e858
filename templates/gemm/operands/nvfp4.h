// NVFP4: B of e2m1 with an e4m3fn scale for every 16 elements of k. The scale of the whole matrix is a factor of the epilogue.
#pragma once
#include "gemm/operands/groups.h"
#include "gemm/operands/mx_numbers.h"

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
  if constexpr (__is_same(A, f16)) return unpack_e2m1_f16(word, 0x666462605e5c5800ull, Halves(e4m3fn_over_256(scale))); // 256 times per number
  else return unpack_e2m1_bf16(word, e4m3fn_as_f32(scale));
}

} // namespace detail

template <GemmConfig config> struct Nvfp4Words : WordScales<config, Nvfp4Scales> {
  template <class A, class B> KILN_MEMBER Word16 b_word(const Word16& loaded, int p, int i, int u, int w) const {
    return detail::unpack_nvfp4<A>(loaded[w], this->scale[p][i][u].of[w / 2]);
  }
  template <class A> KILN_DEVICE Word16 a_word(const Word16& loaded) { return loaded; }
};

} // namespace kiln
