// Dot products of what a lane loads with 16-byte accesses, without matrix instructions.
#pragma once
#include "common/matrix.h"

namespace kiln {

// Elements that the target multiplies and adds two or four at a time stay packed; others become f32.
template <class T> inline constexpr bool has_dot = __is_same(T, f16) || __is_same(T, i8) || (__is_same(T, bf16) && has_dot2_bf16);
template <class T, bool packed> struct DotOperandOf { using type = Word16; };
template <class T> struct DotOperandOf<T, false> { using type = Vec<f32, 16 / static_cast<int>(sizeof(T))>; };
template <class T> using DotOperand = typename DotOperandOf<T, has_dot<T>>::type;

template <class T> KILN_DEVICE DotOperand<T> dot_operand(Word16 word) {
  if constexpr (has_dot<T>) return word;
  else return to<f32>(__builtin_bit_cast(Chunk<T, 16 / static_cast<int>(sizeof(T))>, word));
}

// sum + a . b. Sums of i8 are exact within a word only: they are f32 then.
template <class T, class X, class Y> KILN_DEVICE f32 add_dot(X a, Y b, f32 sum) {
  if constexpr (__is_same(T, i8)) {
    i32 words = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) words = __builtin_amdgcn_sdot4(static_cast<i32>(a[i]), static_cast<i32>(b[i]), words, false);
    return sum + static_cast<f32>(words);
  } else if constexpr (has_dot<T>) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 x = a[i], y = b[i]; // through variables: clang 21 bit-casts element 0 of a vector whatever element is named
      sum = platform::dot2(__builtin_bit_cast(Vec<T, 2>, x), __builtin_bit_cast(Vec<T, 2>, y), sum);
    }
    return sum;
  } else {
    platform::f32x2 pairs = {sum, 0};
#pragma unroll
    for (int i = 0; i < 16 / static_cast<int>(sizeof(T)); i += 2)
      pairs += platform::f32x2{a[i], a[i + 1]} * platform::f32x2{b[i], b[i + 1]};
    return pairs.x + pairs.y;
  }
}

} // namespace kiln
