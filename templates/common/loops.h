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

} // namespace kiln
