// Pointwise operations that most kernels have, by the names of gen/spec/ops.def, on f32 scalars and f32 vectors alike; the others stand in
// common/functions.h.
#pragma once
#include "common/convert.h"

namespace kiln {

template <class A> KILN_DEVICE A neg(A a) { return -a; }
template <class A> KILN_DEVICE A abs(A a) { return platform::abs(a); }
// IEEE minNum and maxNum: a NaN loses against a number.
template <class A, class B> KILN_DEVICE auto min(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return platform::min(x, y); }, a, b); }
template <class A, class B> KILN_DEVICE auto max(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return platform::max(x, y); }, a, b); }
// min(max(x, low), high); NaN becomes low.
template <class A, class B, class C> KILN_DEVICE auto clamp(A x, B low, C high) {
  return map([](f32 v, f32 l, f32 h) KILN_OWN_LINES { return platform::min(platform::max(v, l), h); }, x, low, high);
}
template <class A, class B, class C> KILN_DEVICE auto fma(A a, B b, C c) {
  constexpr int n = common_width<A, B, C>();
  if constexpr (n == 0) return platform::fma(a, b, c);
  else return platform::fma(Vec<f32, n>(a), Vec<f32, n>(b), Vec<f32, n>(c));
}
// f16 * f16 or f16 * f32, exactly as the f32 product, in one instruction that converts for free.
template <class A, class B> KILN_DEVICE auto mixed_product(A a, B b) {
  const f32 zero = platform::pin_negative_zero();
  return map([zero](auto x, auto y) KILN_OWN_LINES { return platform::fma(static_cast<f32>(x), static_cast<f32>(y), zero); }, a, b);
}

// One instruction each: 1 ulp; results below 2^-126 are flushed to 0.
template <class A> KILN_DEVICE auto sqrt(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::sqrt(x); }, a); }
template <class A> KILN_DEVICE auto rsqrt(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::rsqrt(x); }, a); }
template <class A> KILN_DEVICE auto rcp(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::rcp(x); }, a); }

template <class A, class B> KILN_DEVICE auto div(A a, B b) { return a * rcp(b); }
template <class A, class B> KILN_DEVICE auto div_exact(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x / y; }, a, b); }

// The column of the largest, or the smallest, in a row of one element, whatever that is.
template <class A> KILN_DEVICE f32 column_of_one(A) { return 0.0f; }

} // namespace kiln
