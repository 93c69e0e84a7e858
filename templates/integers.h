// Pointwise operations on i32, by the names of gen/spec/ops.def, modulo 2^32; and those of f32 that are exact on i32.
#pragma once
#include "common/vec.h"

namespace kiln {
namespace detail {

// Functions of the bits as numbers from 0 to 2^32 - 1: sums of i32 that leave their range are undefined in C++.
template <class F, class... V> KILN_DEVICE auto map_bits(F f, V... v) {
  return map([f](auto... x) KILN_OWN_LINES { return static_cast<i32>(f(static_cast<u32>(x)...)); }, v...);
}

} // namespace detail

template <class A, class B> KILN_DEVICE auto add_i32(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x + y; }, a, b); }
template <class A, class B> KILN_DEVICE auto sub_i32(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x - y; }, a, b); }
template <class A, class B> KILN_DEVICE auto mul_i32(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x * y; }, a, b); }
template <class A, class B> KILN_DEVICE auto umulhi(A a, B b) {
  return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return static_cast<u32>(static_cast<u64>(x) * y >> 32); }, a, b);
}
template <class A, class B> KILN_DEVICE auto bit_and(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x & y; }, a, b); }
template <class A, class B> KILN_DEVICE auto bit_or(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x | y; }, a, b); }
template <class A, class B> KILN_DEVICE auto bit_xor(A a, B b) { return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x ^ y; }, a, b); }
template <class A, class B> KILN_DEVICE auto shift_left(A a, B b) {
  return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x << (y & 31); }, a, b);
}
template <class A, class B> KILN_DEVICE auto shift_right(A a, B b) {
  return detail::map_bits([](u32 x, u32 y) KILN_OWN_LINES { return x >> (y & 31); }, a, b);
}
template <class A> KILN_DEVICE auto popcount(A a) {
  return detail::map_bits([](u32 x) KILN_OWN_LINES { return platform::count_bits(x); }, a);
}

template <class A, class B> KILN_DEVICE auto lt_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x < y; }, a, b); }
template <class A, class B> KILN_DEVICE auto le_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x <= y; }, a, b); }
template <class A, class B> KILN_DEVICE auto gt_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x > y; }, a, b); }
template <class A, class B> KILN_DEVICE auto ge_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x >= y; }, a, b); }
template <class A, class B> KILN_DEVICE auto eq_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x == y; }, a, b); }
template <class A, class B> KILN_DEVICE auto ne_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x != y; }, a, b); }
template <class A, class B> KILN_DEVICE auto min_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x < y ? x : y; }, a, b); }
template <class A, class B> KILN_DEVICE auto max_i32(A a, B b) { return map([](i32 x, i32 y) KILN_OWN_LINES { return x > y ? x : y; }, a, b); }
template <class A, class B, class C> KILN_DEVICE auto clamp_i32(A x, B low, C high) { return min_i32(max_i32(x, low), high); }
template <class C, class A, class B> KILN_DEVICE auto select_i32(C c, A a, B b) {
  return map([](bool which, i32 x, i32 y) KILN_OWN_LINES { return which ? x : y; }, c, a, b);
}

} // namespace kiln
