// Dot products of what a lane loads with 16-byte accesses, without matrix instructions, 32 bits at a time.
#pragma once
#include "common/matrix.h"

namespace kiln {

// Elements that the target multiplies and adds two or four at a time stay packed; others become f32.
template <class T> inline constexpr bool has_dot = __is_same(T, f16) || __is_same(T, i8) || (__is_same(T, bf16) && has_dot2_bf16);
template <class T, bool packed> struct DotOperandOf { using type = u32; };
template <class T> struct DotOperandOf<T, false> { using type = Vec<f32, 4 / static_cast<int>(sizeof(T))>; };
template <class T> using DotOperand = typename DotOperandOf<T, has_dot<T>>::type;

template <class T> KILN_DEVICE DotOperand<T> dot_operand(u32 word) {
  if constexpr (has_dot<T>) return word;
  else return to<f32>(bit_cast<Chunk<T, 4 / static_cast<int>(sizeof(T))>>(word));
}

// sum + a . b. Sums of i8 are exact within a word only: they are f32 then.
template <class T, class X, class Y> KILN_DEVICE f32 add_dot(X a, Y b, f32 sum) {
  if constexpr (__is_same(T, i8)) {
    return sum + static_cast<f32>(platform::dot4(a, b, 0));
  } else if constexpr (has_dot<T>) {
    return platform::dot2(bit_cast<Vec<T, 2>>(a), bit_cast<Vec<T, 2>>(b), sum);
  } else {
#pragma unroll
    for (int i = 0; i < 4 / static_cast<int>(sizeof(T)); ++i) sum = platform::fma(a[i], b[i], sum);
    return sum;
  }
}

} // namespace kiln
