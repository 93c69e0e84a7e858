// Ranks and running sums: what a wave does with a row that it has as a whole.
#pragma once
#include "common/reduce.h"

namespace kiln {

// A lane's elements of a row that is ranked, and the columns that were found: lane j has the one of rank j, of one rank all lanes.
template <int k, int N, int chunks> struct Ranking {
  Vec<f32, N> left[chunks]; // not ranked yet; NaN is nothing
  f32 columns = 0;
  KILN_MEMBER void put(At at, Vec<f32, N> x) {
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = x[i] != x[i] ? -platform::infinity : x[i];
    left[at.chunk] = detail::existing(at, x, platform::nan);
  }
};

// The sum of what came before, chunk after chunk: of elements that lie in the order of lanes.
struct RunningSum {
  f32 before = 0;
  template <int N> KILN_MEMBER Vec<f32, N> next(At at, Vec<f32, N> x) {
    using platform::shifted, platform::Shift;
    x = detail::existing(at, x, 0.0f);
#pragma unroll
    for (int i = 1; i < N; ++i) x[i] += x[i - 1];
    f32 lanes = x[N - 1]; // of this lane and those below it
    lanes += shifted<Shift::by_1>(lanes);
    lanes += shifted<Shift::by_2>(lanes);
    lanes += shifted<Shift::by_4>(lanes);
    lanes += shifted<Shift::by_8>(lanes);
    lanes += shifted<Shift::end_of_16, 0b1010>(lanes);
    lanes += shifted<Shift::end_of_32, 0b1100>(lanes);
    x += before + shifted<Shift::wave_by_1>(lanes);
    before += platform::read_lane(lanes, wave_size - 1);
    return x;
  }
};

} // namespace kiln
