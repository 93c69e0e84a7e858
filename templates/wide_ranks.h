// WideRanks<config>: rows whose largest elements are wanted. Workgroups read a row and keep the largest of every group of columns; the
// last one of a row looks for the largest elements in the groups that have them, and goes on with one rank a lane.
#pragma once
#include "common/arrival.h"
#include "rowwise.h"
#include "rowwise/cluster.h"
#include "rowwise/selection.h"
#include "wide_ranks_config.h"

namespace kiln {

// The columns that were found: lane j of the workgroup has the one of rank j.
struct WideTop {
  f32 columns;
};
// Elements of those columns.
template <class T> struct WidePick {
  const T* row;
  KILN_MEMBER f32 at(f32 column) const { return only_element<T>(load_chunk<T, 1>(row, static_cast<u32>(column) * static_cast<u32>(sizeof(T)), 0)); }
};

template <WideRanksConfig config> class WideRanks {
  static_assert(why_invalid(config) == nullptr, "invalid WideRanksConfig");
  static constexpr int k = config.ranks, waves = config.waves(), threads = config.threads(), group = config.group, groups = config.groups();
  static constexpr int wanted = groups < k ? groups : k; // groups with candidates
  static constexpr int groups_a_lane = ceil_div(groups, threads), candidates_a_lane = ceil_div(wanted * group, threads);
  static constexpr int waves_with_ranks = ceil_div(k, wave_size);

public:
  KILN_MEMBER WideRanks(u32 rows, void* workspace) : row_(platform::block_x() / config.tiles), tile_(rows, platform::block_x()) {
    if constexpr (config.tiles > 1) {
      counter_ = static_cast<u32*>(workspace) + static_cast<u64>(row_) * config.workspace_words();
      largest_ = reinterpret_cast<f32*>(counter_ + 1);
    } else {
      largest_ = largest_in_lds();
    }
  }
  KILN_MEMBER u32 index() const { return row_; }

  // The first element of this row, in a [rows, cols] tensor or in one that is the same in every row.
  template <class T> KILN_MEMBER T* full(T* tensor, u64 row_stride = config.cols) const { return tensor + row_ * row_stride; }
  template <class T> KILN_MEMBER T* columns(T* tensor) const { return tensor; }
  template <class T> KILN_MEMBER auto scalar(const T* tensor) const { return load_one(tensor); }
  template <class T> KILN_MEMBER auto of_row(const T* tensor, u64 row_stride = 1) const { return load_one(tensor + row_ * row_stride); }

  // Keeps the largest of each group of this workgroup's part of the row. True in the workgroup that goes on.
  template <class T> KILN_MEMBER bool read(const T* row) const {
    auto ring = tile_.ring(tile_.full(row, 0));
    tile_.fetch(ring);
    f32* const kept = largest_;
    tile_.pass([&](At at, auto x) KILN_LAMBDA {
      const f32 most = reduce_group<MaxOf, group>(at, to<f32>(x));
      const u32 column = tile_.column(at);
      if (at.count > 0 && column % group == 0) kept[column / group] = most;
    }, ring);
    if constexpr (config.tiles > 1) {
      static __shared__ u32 arrived;
      return arrives_last(counter_, config.tiles - 1, arrived);
    } else {
      platform::barrier();
      return true;
    }
  }

  // The k elements that come first lie in the k groups whose largest come first: an element of another one has k before it.
  template <class T> KILN_MEMBER WideTop rank(const T* row) const {
    u32 largest[groups_a_lane];
#pragma unroll
    for (int i = 0; i < groups_a_lane; ++i) {
      const u32 g = i * threads + platform::thread_id();
      largest[i] = g < groups ? key_of(largest_[g]) : 0; // a group of NaN alone is one of minus infinity
    }
    Selection<waves> of_groups{space()};
    of_groups.find(largest, wanted);
    of_groups.each(largest, [&](u32 place, int i) KILN_LAMBDA { list()[place] = static_cast<u32>(i) * threads + platform::thread_id(); });
    platform::barrier();
    f32 number[candidates_a_lane];
    load_candidates(row, number);
    const f32 least = detail::from_order(of_groups.threshold), bound = groups < k || least != least ? -platform::infinity : least;
    const u32 count = gather_candidates(number, bound);
    if (count <= gathered) [[likely]] rank_gathered(count);
    else rank_all(number); // many are alike, or lie in few groups
    sort_found();
    return {static_cast<f32>(sorted()[platform::thread_id() < k ? platform::thread_id() : 0])};
  }
  // Whether this wave has none of the ranks. It may end then.
  KILN_MEMBER bool is_beyond_ranks() const { return platform::uniform(platform::thread_id() / wave_size) >= static_cast<u32>(waves_with_ranks); }
  template <class T> KILN_MEMBER auto picks(const T* row) const { return WidePick<T>{row}; }

  // ---- ranks, one a lane: reductions in the order of waves

  KILN_MEMBER u32 rank_index() const { return platform::thread_id(); }
  template <class R, int count> KILN_MEMBER f32 reduce_ranks(f32 value) const {
    if constexpr (of_magnitudes<R>) value = platform::abs(value);
    value = across_lanes<R, wave_size>(platform::thread_id() < k ? value : R::identity);
    return combined(value, [](f32 a, f32 b) KILN_LAMBDA { return R::combine(a, b); });
  }
  template <class R, int count> KILN_MEMBER f32 find_rank(f32 value) const {
    const u32 rank = platform::thread_id();
    const bool is_better = __is_same(R, MaxOf) ? value > R::identity : value < R::identity;
    const Found best = combined(found_across_lanes<R, wave_size>(rank < k && is_better ? Found{value, rank} : Found{R::identity, no_column}),
                                [](Found a, Found b) KILN_LAMBDA { return better_of<R>(a, b); });
    return best.column == no_column ? 0.0f : static_cast<f32>(best.column);
  }
  template <int count> KILN_MEMBER f32 sum_up_to_rank(f32 value) const {
    static __shared__ f32 totals[waves];
    RunningSum own;
    value = own.next(At{0, 1, false}, Vec<f32, 1>(platform::thread_id() < k ? value : 0.0f))[0];
    platform::barrier(); // behind what read the totals of a sum before
    totals[platform::thread_id() / wave_size] = own.before;
    platform::barrier();
    f32 before = 0;
#pragma unroll
    for (int wave = 0; wave + 1 < waves_with_ranks; ++wave) before += platform::thread_id() / wave_size > static_cast<u32>(wave) ? totals[wave] : 0.0f;
    return value + before;
  }
  template <int count, class T, class V> KILN_MEMBER void store_ranks(T* tensor, V value, u64 row_stride = count) const {
    if (const u32 rank = platform::thread_id(); rank < k) store_one(tensor + row_ * row_stride + rank, value);
  }
  template <class T, class V> KILN_MEMBER void store_of_row(T* tensor, V value, u64 row_stride = 1) const {
    if (platform::thread_id() == 0) store_one(tensor + row_ * row_stride, value);
  }

private:
  using Candidate = u64; // its key, and the complement of its column: of those alike the first one is the largest
  static constexpr int gathered = 1024, gathered_a_lane = gathered / threads;
  static KILN_MEMBER u32 key_of(f32 x) { return detail::in_order(x != x ? -platform::infinity : x); }
  static KILN_MEMBER f32* largest_in_lds() {
    static __shared__ f32 memory[config.tiles > 1 ? 1 : groups];
    return memory;
  }
  static KILN_MEMBER SelectionSpace<waves>& space() {
    static __shared__ SelectionSpace<waves> memory;
    return memory;
  }
  static KILN_MEMBER u32* list() { // of groups
    static __shared__ u32 memory[k];
    return memory;
  }
  static KILN_MEMBER Candidate* found() {
    static __shared__ __attribute__((aligned(16))) Candidate memory[k + 2];
    return memory;
  }
  struct Gathered {
    f32 number;
    u32 column;
  };
  static KILN_MEMBER Gathered* gathered_list() {
    static __shared__ Gathered memory[gathered];
    return memory;
  }
  static KILN_MEMBER u32& found_count() {
    static __shared__ u32 count;
    return count;
  }
  static KILN_MEMBER u32* sorted() { // columns
    static __shared__ u32 memory[k];
    return memory;
  }

  template <class T> KILN_DEVICE auto load_one(const T* from) { return only_element<__remove_cv(T)>(load_chunk<__remove_cv(T), 1>(from, 0, 0)); }
  template <class T> KILN_DEVICE void store_one(T* place, f32 value) { store_chunk<T, 1>(place, 0, 0, to<T>(Vec<f32, 1>(value))); }
  template <class T> KILN_DEVICE void store_one(T* place, i32 value) { store_chunk<T, 1>(place, 0, 0, to<T>(Vec<i32, 1>(value))); }

  // A wave reads a group at a time, so that candidates lie in the order of columns.
  static KILN_MEMBER u32 group_of_candidate(int i) { return static_cast<u32>(i) * waves + platform::uniform(platform::thread_id() / wave_size); }
  static KILN_MEMBER u32 column_of_candidate(int i) { return platform::uniform(list()[group_of_candidate(i)]) * group + platform::lane_id(); }
  static KILN_MEMBER bool has_candidate(int i) {
    return (wanted % waves == 0 || group_of_candidate(i) < static_cast<u32>(wanted)) &&
           (config.cols % group == 0 || column_of_candidate(i) < static_cast<u32>(config.cols));
  }
  template <class T> static KILN_MEMBER void load_candidates(const T* row, f32 (&number)[candidates_a_lane]) {
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) {
      const u32 from = has_candidate(i) ? column_of_candidate(i) : 0;
      number[i] = to<f32>(load_chunk<T, 1>(row, from * static_cast<u32>(sizeof(T)), 0))[0];
    }
  }

  // Those that are not below the bound, in any order, as far as there is room; and how many there are. NaN counts as minus infinity.
  static KILN_MEMBER u32 gather_candidates(const f32 (&number)[candidates_a_lane], f32 bound) {
    if (platform::thread_id() == 0) found_count() = 0;
    platform::barrier();
    u32 own = 0;
    const bool takes_all = bound == -platform::infinity;
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) own += (takes_all || number[i] >= bound) && has_candidate(i) ? 1 : 0;
    const u32 up_to = platform::sum_up_to_lane(own), of_wave = platform::read_lane(up_to, wave_size - 1);
    u32 place = platform::add_in_workgroup(&found_count(), of_wave) + up_to - own;
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) {
      const f32 again = platform::opaque_registers(number[i]); // compared anew: kept, the lanes take more scalar registers than there are
      if ((takes_all || again >= bound) && has_candidate(i)) {
        if (place < gathered) gathered_list()[place] = {again, column_of_candidate(i)};
        ++place;
      }
    }
    platform::barrier();
    return platform::uniform(found_count());
  }

  // Selects the k largest of a list in any order: of those alike the first columns.
  static KILN_MEMBER void rank_gathered(u32 count) {
    u32 key[gathered_a_lane], column[gathered_a_lane];
#pragma unroll
    for (int i = 0; i < gathered_a_lane; ++i) {
      const u32 place = i * threads + platform::thread_id();
      const Gathered one = gathered_list()[place < count ? place : 0];
      key[i] = place < count ? key_of(one.number) : 0;
      column[i] = one.column;
    }
    Selection<waves> by_key{space()}, by_column{space()};
    by_key.find(key, k);
    u32 ties[gathered_a_lane];
    if (!by_key.selects_all_ties()) {
#pragma unroll
      for (int i = 0; i < gathered_a_lane; ++i) ties[i] = key[i] == by_key.threshold ? ~column[i] : 0;
      platform::barrier();
      by_column.find(ties, by_key.ties);
    }
    if (platform::thread_id() == 0) found_count() = 0;
    platform::barrier();
#pragma unroll
    for (int i = 0; i < gathered_a_lane; ++i) {
      const bool is_tie = !by_key.selects_all_ties() && key[i] == by_key.threshold &&
                          (by_column.selects_all_ties() ? ~column[i] > by_column.threshold : ~column[i] >= by_column.threshold);
      const bool is_selected = key[i] > by_key.threshold || is_tie;
      const u64 lanes = platform::lanes_where(is_selected);
      const u32 first = platform::add_in_workgroup(&found_count(), platform::count_lanes(lanes));
      if (is_selected) found()[first + platform::lanes_below(lanes)] = static_cast<u64>(key[i]) << 32 | ~column[i];
    }
  }
  // The same of all candidates.
  static KILN_MEMBER void rank_all(const f32 (&number)[candidates_a_lane]) {
    u32 key[candidates_a_lane];
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) key[i] = has_candidate(i) ? key_of(number[i]) : 0;
    Selection<waves> of_columns{space()};
    of_columns.find(key, k);
    of_columns.each(key, [&](u32 place, int i) KILN_LAMBDA { found()[place] = static_cast<u64>(key[i]) << 32 | ~column_of_candidate(i); });
  }

  // A rank is how many come before. Parts of the list are counted by different waves, two candidates at a time.
  static KILN_MEMBER void sort_found() {
    constexpr int parts = waves / waves_with_ranks, pairs = ceil_div(ceil_div(k, parts), 2);
    static __shared__ u32 before[parts][waves_with_ranks * wave_size];
    if (platform::thread_id() == 0) found()[k] = 0, found()[k + 1] = 0;
    platform::barrier();
    const u32 wave = platform::uniform(platform::thread_id() / wave_size), part = wave / waves_with_ranks;
    const u32 own = wave % waves_with_ranks * wave_size + platform::lane_id();
    const Candidate mine = found()[own < k ? own : 0];
    if (part < parts) {
      u32 here = 0;
      const u32 first = part * pairs;
#pragma unroll 8
      for (u32 i = 0; i < pairs; ++i) {
        const u32 pair = first + i < (k + 1) / 2 ? first + i : k / 2; // a pair beyond the list counts for nothing
        const auto others = *reinterpret_cast<const Vec<u64, 2>*>(found() + 2 * pair);
        const bool exists = first + i < (k + 1) / 2;
        here += (exists && others.x > mine ? 1 : 0) + (exists && others.y > mine ? 1 : 0);
      }
      before[part][own] = here;
    }
    platform::barrier();
    if (part == 0 && own < k) {
      u32 rank = 0;
#pragma unroll
      for (int p = 0; p < parts; ++p) rank += before[p][own];
      sorted()[rank] = ~static_cast<u32>(mine);
    }
    platform::barrier();
  }

  // What waves with ranks have, each the same in its lanes, in the order of waves.
  template <class V, class Combine> static KILN_MEMBER V combined(V value, Combine combine) {
    static __shared__ V slots[waves];
    platform::barrier(); // behind what read the slots before
    slots[platform::thread_id() / wave_size] = value;
    platform::barrier();
    V total = slots[0];
#pragma unroll
    for (int wave = 1; wave < waves_with_ranks; ++wave) total = combine(total, slots[wave]);
    return total;
  }

  u32 row_;
  Row<config.streamed()> tile_;
  u32* counter_ = nullptr;
  f32* largest_;
};

} // namespace kiln
