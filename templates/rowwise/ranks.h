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

namespace detail {

// Integers in the order of numbers; 0 for NaN, which is nothing. Zeros of both signs are alike.
KILN_DEVICE u32 in_order(f32 x) {
  const u32 bits = bit_cast<u32>(x + 0.0f);
  return x != x ? 0u : bits ^ (static_cast<u32>(static_cast<i32>(bits) >> 31) | 0x80000000u);
}

// The largest of a wave, the same in all lanes: DPP joins with the maxima of integers, which need no canonical form.
KILN_DEVICE u32 largest_of_wave(u32 x) {
  using platform::shifted, platform::Shift;
  const auto max = [](u32 a, u32 b) KILN_LAMBDA { return a > b ? a : b; };
  x = max(x, shifted<Shift::by_1>(x));
  x = max(x, shifted<Shift::by_2>(x));
  x = max(x, shifted<Shift::by_4>(x));
  x = max(x, shifted<Shift::by_8>(x));
  x = max(x, shifted<Shift::end_of_16, 0b1010>(x));
  x = max(x, shifted<Shift::end_of_32, 0b1100>(x));
  return platform::read_lane(x, wave_size - 1);
}

// A number of a list in order, and the complement of its column: of those alike the lowest column is the largest.
struct Ranked {
  u32 number = 0, place = 0;
  KILN_MEMBER u64 bits() const { return static_cast<u64>(number) << 32 | place; }
};

// The largest first, by Batcher's network.
template <int N> KILN_DEVICE void sort(Ranked (&list)[N]) {
#pragma unroll
  for (int p = 1; p < N; p *= 2)
#pragma unroll
    for (int q = p; q >= 1; q /= 2)
#pragma unroll
      for (int i = 0; i + q < N; ++i) {
        const bool compares = i >= q % p && (i - q % p) / q % 2 == 0 && i / (2 * p) == (i + q) / (2 * p);
        if (!compares) continue;
        const Ranked a = list[i], b = list[i + q];
        const bool swaps = b.bits() > a.bits();
        list[i] = {swaps ? b.number : a.number, swaps ? b.place : a.place};
        list[i + q] = {swaps ? a.number : b.number, swaps ? a.place : b.place};
      }
}

// Lane j gets the column of rank j of a wave's row, the lowest first of those alike. Lanes have N columns each, in their order, and sort
// them once; then each rank is a maximum of the lists' heads.
template <int k, int N> KILN_DEVICE u32 ranks_of_lists(Vec<f32, N> x, u32 first_column) {
  Ranked list[N];
#pragma unroll
  for (int i = 0; i < N; ++i) list[i] = {in_order(x[i]), ~(first_column + static_cast<u32>(i))};
  sort(list);
  const u32 lane = platform::lane_id();
  u32 found = ~0u; // column 0 in lanes without a rank
#pragma unroll
  for (u32 rank = 0; rank < k; ++rank) {
    const auto best = static_cast<u32>(platform::first_lane(list[0].number == largest_of_wave(list[0].number)));
    const u32 place = platform::read_lane(list[0].place, best);
    found = lane == rank ? place : found;
    const bool is_taken = lane == best;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Ranked next = i + 1 < N ? list[i + 1] : Ranked{};
      list[i] = {is_taken ? next.number : list[i].number, is_taken ? next.place : list[i].place};
    }
  }
  return ~found;
}

} // namespace detail

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
