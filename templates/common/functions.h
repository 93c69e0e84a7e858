// Pointwise operations beyond those of common/arithmetic.h: comparisons, and functions made of several instructions.
#pragma once
#include "common/arithmetic.h"

namespace kiln {

inline constexpr f32 log2_e = 1.44269504f, ln_2 = 0.693147181f;

template <class A, class B> KILN_DEVICE auto lt(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x < y; }, a, b); }
template <class A, class B> KILN_DEVICE auto le(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x <= y; }, a, b); }
template <class A, class B> KILN_DEVICE auto gt(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x > y; }, a, b); }
template <class A, class B> KILN_DEVICE auto ge(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x >= y; }, a, b); }
template <class A, class B> KILN_DEVICE auto eq(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x == y; }, a, b); }
template <class A, class B> KILN_DEVICE auto ne(A a, B b) { return map([](f32 x, f32 y) KILN_OWN_LINES { return x != y; }, a, b); }
template <class A, class B> KILN_DEVICE auto logical_and(A a, B b) { return map([](bool x, bool y) KILN_OWN_LINES { return x && y; }, a, b); }
template <class A, class B> KILN_DEVICE auto logical_or(A a, B b) { return map([](bool x, bool y) KILN_OWN_LINES { return x || y; }, a, b); }
template <class A> KILN_DEVICE auto logical_not(A a) { return map([](bool x) KILN_OWN_LINES { return !x; }, a); }
template <class C, class A, class B> KILN_DEVICE auto select(C c, A a, B b) {
  return map([](bool which, f32 x, f32 y) KILN_OWN_LINES { return which ? x : y; }, c, a, b);
}

// One instruction each: exp2 and log2 with 1 ulp, results below 2^-126 flushed to 0.
template <class A> KILN_DEVICE auto exp2(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::exp2(x); }, a); }
template <class A> KILN_DEVICE auto log2(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::log2(x); }, a); }
template <class A> KILN_DEVICE auto floor(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::floor(x); }, a); }
template <class A> KILN_DEVICE auto round(A a) { return map([](f32 x) KILN_OWN_LINES { return platform::round_to_even(x); }, a); }

// a times a constant. f16 vectors are taken as they lie in memory: the product converts them for free.
template <class A> KILN_DEVICE auto scaled(A a, f32 factor) { return a * factor; }
template <int N> KILN_DEVICE Vec<f32, N> scaled(Vec<f16, N> a, f32 factor) {
  return map([factor](f16 x) KILN_OWN_LINES { return platform::fma(static_cast<f32>(x), factor, 0.0f); }, a);
}
template <class A> KILN_DEVICE A as_f32(A a) { return a; }
template <int N> KILN_DEVICE Vec<f32, N> as_f32(Vec<f16, N> a) { return to<f32>(a); }

// Keeps the sums that make `a` in instructions of two: between exp2 and rcp, which take one number, LLVM splits them.
template <class A> KILN_DEVICE A in_pairs(A a) { return a; }
template <int N> KILN_DEVICE Vec<f32, N> in_pairs(Vec<f32, N> a) {
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) {
    const Vec<f32, 2> pair = platform::opaque_registers(Vec<f32, 2>{a[i], a[i + 1]});
    a[i] = pair.x, a[i + 1] = pair.y;
  }
  return a;
}

template <class A> KILN_DEVICE auto exp(A a) { return exp2(scaled(a, log2_e)); }
template <class A> KILN_DEVICE auto log(A a) { return log2(a) * ln_2; }
template <class A> KILN_DEVICE auto sigmoid(A a) { return rcp(in_pairs(exp2(scaled(a, -log2_e)) + 1.0f)); }
template <class A> KILN_DEVICE auto silu(A a) { return as_f32(a) * sigmoid(a); }
template <class A> KILN_DEVICE auto relu(A a) { return max(a, 0.0f); }
// 1 - 2 / (exp(2x) + 1): right at both infinities.
template <class A> KILN_DEVICE auto tanh(A a) { return 1.0f - rcp(exp2(a * (2.0f * log2_e)) + 1.0f) * 2.0f; }
// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: |error| <= 1.5e-7.
template <class A> KILN_DEVICE auto erf(A a) {
  const auto x = abs(a);
  const auto t = rcp(x * 0.3275911f + 1.0f);
  const auto tail = ((((t * 1.061405429f - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
  const auto magnitude = 1.0f - tail * exp2(x * x * -log2_e);
  // By bits: LLVM 21 cannot select a copysign whose result is rounded to bf16.
  return map([](f32 m, f32 x) KILN_OWN_LINES { return bit_cast<f32>(bit_cast<u32>(m) | (bit_cast<u32>(x) & 0x80000000u)); },
             magnitude, a);
}
template <class A> KILN_DEVICE auto gelu(A a) { return a * 0.5f * (erf(a * 0.707106781f) + 1.0f); }
// x * sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3), is 0.5 x (1 + tanh(u)).
template <class A> KILN_DEVICE auto gelu_tanh(A a) { return a * sigmoid(a * (a * a * 0.0713548163f + 1.59576912f)); }
template <class A> KILN_DEVICE auto softplus(A a) { return max(a, 0.0f) + log(exp(-abs(a)) + 1.0f); }
// Radians; v_sin and v_cos take turns.
template <class A> KILN_DEVICE auto sin(A a) {
  return map([](f32 turns) KILN_OWN_LINES { return platform::sin_turns(platform::fract(turns)); }, a * 0.159154943f);
}
template <class A> KILN_DEVICE auto cos(A a) {
  return map([](f32 turns) KILN_OWN_LINES { return platform::cos_turns(platform::fract(turns)); }, a * 0.159154943f);
}
template <class A, class B> KILN_DEVICE auto pow(A a, B b) { return exp2(log2(a) * b); }

} // namespace kiln
