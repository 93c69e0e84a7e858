// Loops with constant bounds, unrolled: for_each<2, 3>(f) calls f(0, 0), f(0, 1), f(0, 2), f(1, 0), f(1, 1), f(1, 2).
#pragma once
#include "common/platform.h"

namespace kiln {

template <int n, class F> KILN_DEVICE void for_each(F f) {
#pragma unroll
  for (int i = 0; i < n; ++i) f(i);
}
template <int n, int m, class F> KILN_DEVICE void for_each(F f) {
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < m; ++j) f(i, j);
}
template <int n, int m, int l, class F> KILN_DEVICE void for_each(F f) {
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < m; ++j)
#pragma unroll
      for (int k = 0; k < l; ++k) f(i, j, k);
}

// f(constant) for each, which converts to int where a constant is asked for. If f leaves some out, `if constexpr` keeps indices of those, which
// are out of range, from LLVM: SROA sees them before branches that are never taken are gone, and makes one vector of what they overlap.
template <int at> struct Constant {
  constexpr KILN_MEMBER operator int() const { return at; }
};
template <int n, int from = 0, class F> KILN_DEVICE void for_each_constant(F f) {
  if constexpr (from < n) {
    f(Constant<from>());
    for_each_constant<n, from + 1>(f);
  }
}

} // namespace kiln
