// Searches, ranks and running sums: columns of a row that are found, and what a wave does with a row that it has as a whole.
#pragma once
#include "common/found.h"
#include "common/lane_instructions.h"
#include "rowwise.h"

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

// The number that has the place, or NaN.
KILN_DEVICE f32 from_order(u32 place) { return bit_cast<f32>(place & 0x80000000u ? place ^ 0x80000000u : ~place); }

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

template <RowwiseConfig config>
template <int id, int place, bool last, class R>
KILN_MEMBER bool Row<config>::find(ArgAccumulator<R>& accumulator) const {
  if constexpr (config.tiles > 1) {
    if (cluster_.template recall<place>(accumulator)) [[unlikely]] return false;
    cluster_.know_generation();
  }
  Found best;
  if constexpr (config.threads_per_row <= wave_size) {
    best = found_across_lanes<R, config.threads_per_row>(accumulator.best);
  } else {
    constexpr int partials = config.waves_per_row(); // at most 16
    static __shared__ Found slots[partials];
    best = found_across_lanes<R, wave_size>(accumulator.best);
    const u32 thread = platform::thread_id();
    slots[thread / wave_size] = best; // all lanes of a wave write the same
    platform::barrier();
    best = found_across_lanes<R, partials>(slots[thread % partials]);
  }
  if constexpr (config.tiles > 1) return cluster_.template meet_found<place, last, R>(tile_, best, accumulator.total);
  accumulator.total = best.column == no_column ? 0.0f : static_cast<f32>(best.column);
  return false;
}

template <RowwiseConfig config> template <int k> KILN_MEMBER auto Row<config>::ranking() const -> Ranking<k, vec, chunks> {
  static_assert(config.threads_per_row == wave_size && config.residency == Residency::registers, "a wave holds the row");
  return {};
}
template <RowwiseConfig config> template <int k> KILN_MEMBER void Row<config>::rank(Ranking<k, vec, chunks>& ranking) const {
  u32 found = 0;
  if constexpr (k > 1 && chunks == 1 && vec <= 8) {
    found = detail::ranks_of_lists<k>(ranking.left[0], lane_column());
  } else if constexpr (k * chunks * vec <= 64) {
#pragma unroll
    for (u32 j = 0; j < k; ++j) found = with_rank<k>(found, j, take_largest(ranking.left));
  } else {
#pragma nounroll
    for (u32 j = 0; j < k; ++j) found = with_rank<k>(found, j, take_largest(ranking.left));
  }
  ranking.columns = static_cast<f32>(found);
}
template <RowwiseConfig config> template <int id> struct Row<config>::Picks {
  const Row& row;
  KILN_MEMBER f32* elements() const {
    static __shared__ f32 storage[config.rows_per_block][chunks * stride];
    return storage[platform::thread_id() / wave_size];
  }
  KILN_MEMBER void put(At at, Vec<f32, vec> x) const { *reinterpret_cast<Vec<f32, vec>*>(elements() + row.column_of(at.chunk)) = x; }
  KILN_MEMBER f32 at(f32 column) const {
    platform::wave_barrier();
    return elements()[static_cast<u32>(column)];
  }
};
template <RowwiseConfig config> template <int id> KILN_MEMBER auto Row<config>::picks() const -> Picks<id> { return {*this}; }
template <RowwiseConfig config> template <int id> struct Row<config>::Pieces {
  static constexpr int waves = config.threads_per_row / wave_size, count = chunks * waves;
  static_assert(config.tiles == 1 && waves >= 1, "a workgroup has the whole row");
  const Row& row;
  // The sum of each piece, in the order of columns: waves have their own parts of rows that are no ragged ones. Then that of all before it.
  KILN_MEMBER f32* sums() const {
    static __shared__ f32 storage[config.rows_per_block][count];
    return storage[platform::thread_id() / config.threads_per_row];
  }
  KILN_MEMBER u32 wave() const { return platform::uniform(platform::thread_id() % config.threads_per_row / wave_size); }
  KILN_MEMBER u32 piece(At at) const { return config.exact() ? wave() * chunks + at.chunk : at.chunk * waves + wave(); }
  KILN_MEMBER void put(At at, Vec<f32, vec> x) const {
    x = detail::existing(at, x, 0.0f);
#pragma unroll
    for (int i = 1; i < vec; ++i) x[0] += x[i];
    sums()[piece(at)] = across_lanes<SumOf, wave_size>(x[0]); // all lanes of a wave write the same
  }
  KILN_MEMBER void meet() const {
    if constexpr (waves > 1) platform::barrier();
    else platform::wave_barrier();
    if (wave() == 0) {
      constexpr int each = ceil_div(count, wave_size);
      const u32 first = platform::lane_id() * each;
      f32 here[each], sum = 0;
#pragma unroll
      for (int i = 0; i < each; ++i) sum += here[i] = first + i < count ? sums()[first + i] : 0.0f;
      RunningSum all;
      f32 before = all.next(At{0, 1, false}, Vec<f32, 1>(sum))[0]; // with this lane's own
      before = platform::shifted<platform::Shift::wave_by_1>(before);
      platform::wave_barrier();
#pragma unroll
      for (int i = 0; i < each; ++i) {
        if (first + i < count) sums()[first + i] = before;
        before += here[i];
      }
    }
    if constexpr (waves > 1) platform::barrier();
    else platform::wave_barrier();
  }
  KILN_MEMBER Vec<f32, vec> next(At at, Vec<f32, vec> x) const { return RunningSum{sums()[piece(at)]}.next(at, x); }
};
template <RowwiseConfig config> template <int id> KILN_MEMBER auto Row<config>::pieces() const -> Pieces<id> { return {*this}; }
template <RowwiseConfig config> template <class R, int k> KILN_MEMBER f32 Row<config>::reduce_ranks(f32 value) const {
  if constexpr (__is_same(R, AbsMaxOf)) value = platform::abs(value);
  return platform::uniform(across_lanes<R, power_of_two_from(k)>(lane_ < k ? value : R::identity));
}
template <RowwiseConfig config> template <class R, int k> KILN_MEMBER f32 Row<config>::find_rank(f32 value) const {
  const bool is_better = __is_same(R, MaxOf) ? value > R::identity : value < R::identity;
  const Found best = found_across_lanes<R, power_of_two_from(k)>(lane_ < k && is_better ? Found{value, lane_} : Found{R::identity, no_column});
  const u32 rank = platform::uniform(best.column);
  return rank == no_column ? 0.0f : static_cast<f32>(rank);
}
template <RowwiseConfig config> template <int k> KILN_MEMBER f32 Row<config>::sum_up_to_rank(f32 value) const {
  return RunningSum{}.next(At{0, 1, false}, Vec<f32, 1>(lane_ < k ? value : 0.0f))[0];
}
template <RowwiseConfig config> template <int k, class T, class V> KILN_MEMBER void Row<config>::store_ranks(T* tensor, V value, u64 row_stride) const {
  if (lane_ < k) store_one(tensor + row_ * row_stride, lane_, value);
}

template <RowwiseConfig config> template <int k> KILN_MEMBER u32 Row<config>::with_rank(u32 found, u32 rank, u32 column) const {
  return k == 1 || lane_ == rank ? column : found;
}
// The column of the largest element that is left, the lowest of those alike. It is not left afterwards.
template <RowwiseConfig config> KILN_MEMBER u32 Row<config>::take_largest(Vec<f32, vec> (&left)[chunks]) const {
  f32 best = left[0][0];
#pragma unroll
  for (int e = 1; e < chunks * vec; ++e) best = platform::max(best, left[e / vec][e % vec]);
  const f32 largest = platform::uniform(across_lanes<MaxOf, wave_size>(best));
  u32 own = 0; // column of this lane's lowest one
#pragma unroll
  for (int e = chunks * vec - 1; e >= 0; --e) own = left[e / vec][e % vec] == largest ? e / vec * stride + e % vec : own;
  own += lane_column();
  u32 column;
  if constexpr (chunks == 1) { // lanes have columns in their order
    column = platform::read_lane(own, platform::first_lane(best == largest));
  } else {
    const f32 number = best == largest ? static_cast<f32>(own) : platform::infinity;
    column = static_cast<u32>(platform::uniform(across_lanes<MinOf, wave_size>(number)));
  }
  const u32 from_lane = column - lane_column();
#pragma unroll
  for (int e = 0; e < chunks * vec; ++e)
    left[e / vec][e % vec] = from_lane == static_cast<u32>(e / vec * stride + e % vec) ? platform::nan : left[e / vec][e % vec];
  return column;
}

} // namespace kiln
