// WideRanks<config>: rows whose largest elements are wanted. Workgroups read a row and keep the largest of every group of columns; the
// last one of a row looks for the largest elements in the groups that have them, and goes on with one rank a lane.
#pragma once
#include "common/arrival.h"
#include "rowwise.h"
#include "rowwise/cluster.h"
#include "rowwise/selection.h"
#include "rowwise/whole_row.h"
#include "wide_ranks_config.h"

namespace kiln {

// The columns that were found: lane j of the workgroup has the one of rank j.
struct WideTop {
  f32 columns;
};

template <WideRanksConfig config> class WideRanks : public WholeRow<config.cols> {
  static_assert(why_invalid(config) == nullptr, "invalid WideRanksConfig");
  static constexpr int k = config.ranks, waves = config.waves(), threads = config.threads(), group = config.group, groups = config.groups();
  static constexpr int wanted = groups < k ? groups : k; // groups with candidates
  static constexpr int searched = config.max_searched(), ranked = config.max_ranked();
  static constexpr int groups_a_lane = ceil_div(groups, threads), candidates_a_lane = ceil_div(wanted * group, threads);
  static constexpr int waves_with_ranks = ceil_div(k, wave_size);
  using WholeRow<config.cols>::row_, WholeRow<config.cols>::store_one;

public:
  KILN_MEMBER WideRanks(u32 rows, void* workspace)
      : WholeRow<config.cols>(platform::block_x() / config.tiles), tile_(rows, platform::block_x()) {
    if constexpr (config.tiles > 1) {
      counter_ = static_cast<u32*>(workspace) + static_cast<u64>(row_) * config.workspace_words();
      largest_ = reinterpret_cast<f32*>(counter_ + 1);
    } else {
      largest_ = largest_in_lds();
    }
  }

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
    if (platform::thread_id() < bins) sizes()[platform::thread_id()] = 0;
    if (platform::thread_id() < 2) counts()[platform::thread_id()] = 0;
    if (!rank_few(row, largest)) rank_all(row, largest);
    return {static_cast<f32>(sorted()[platform::thread_id() < k ? platform::thread_id() : 0])};
  }
  // Whether this wave has none of the ranks. It may end then.
  KILN_MEMBER bool is_beyond_ranks() const { return platform::uniform(platform::thread_id() / wave_size) >= static_cast<u32>(waves_with_ranks); }

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
    static __shared__ f32 totals[2][waves];
    f32* const sums = totals[turn_++ % 2];
    RunningSum own;
    value = own.next(At{0, 1, false}, Vec<f32, 1>(platform::thread_id() < k ? value : 0.0f))[0];
    sums[platform::thread_id() / wave_size] = own.before;
    platform::barrier();
    f32 before = 0;
#pragma unroll
    for (int wave = 0; wave + 1 < waves_with_ranks; ++wave) before += platform::thread_id() / wave_size > static_cast<u32>(wave) ? sums[wave] : 0.0f;
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
    static __shared__ u32 memory[searched];
    return memory;
  }
  static KILN_MEMBER u32* columns_found() {
    static __shared__ u32 memory[ranked];
    return memory;
  }
  static KILN_MEMBER Candidate* found() {
    static __shared__ Candidate memory[ranked];
    return memory;
  }
  static KILN_MEMBER u32* counts() { // of groups and columns in lists
    static __shared__ u32 memory[2];
    return memory;
  }
  static constexpr u32 bins = 256; // that candidates are sorted by
  static KILN_MEMBER u32* sizes() {
    static __shared__ u32 memory[bins];
    return memory;
  }
  static KILN_MEMBER u32* firsts() {
    static __shared__ u32 memory[bins];
    return memory;
  }
  static KILN_MEMBER u32* sorted() { // columns
    static __shared__ u32 memory[k];
    return memory;
  }

  // A place in a list for each lane's `own`; lists are in any order.
  static KILN_MEMBER u32 place_in(u32* count, u32 own) {
    const u32 up_to = platform::sum_up_to_lane(own);
    return platform::add_in_workgroup(count, platform::read_lane(up_to, wave_size - 1)) + up_to - own;
  }

  // Ranks the elements that are not below a bound that k groups at least, and few more, do not lie below. False where those are many:
  // many are alike, or lie in few groups.
  template <class T> static KILN_MEMBER bool rank_few(const T* row, const u32 (&largest)[groups_a_lane]) {
    if constexpr (groups <= searched) return false;
    Selection<waves> of_groups{space()};
    of_groups.find(largest, k, searched);
    if (!of_groups.selects_all_ties()) [[unlikely]] return false;
    u32 own = 0;
#pragma unroll
    for (int i = 0; i < groups_a_lane; ++i) own += largest[i] > of_groups.threshold ? 1 : 0;
    u32 place = place_in(&counts()[0], own);
#pragma unroll
    for (int i = 0; i < groups_a_lane; ++i)
      if (largest[i] > of_groups.threshold) list()[place++] = static_cast<u32>(i) * threads + platform::thread_id();
    platform::barrier();
    find_columns(row, of_groups.above, detail::from_order(of_groups.threshold + 1));
    const u32 count = platform::uniform(counts()[1]);
    if (count > static_cast<u32>(ranked)) [[unlikely]] return false;
    const u32 t = platform::thread_id(), column = columns_found()[t < count ? t : 0];
    const u32 key = key_of(to<f32>(load_chunk<T, 1>(row, column * static_cast<u32>(sizeof(T)), 0))[0]);
    sort(static_cast<u64>(key) << 32 | ~column, count, of_groups.threshold, of_groups.most);
    return true;
  }
  // Lists the columns of the listed groups whose elements are not below the bound, as far as there is room; and how many there are.
  template <class T> static KILN_MEMBER void find_columns(const T* row, u32 listed, f32 bound) {
    constexpr int rest = config.cols % group, part = rest % 4 == 0 ? 4 : rest % 2 == 0 ? 2 : 1; // rows end between parts
    constexpr int lanes = group / part, turns = ceil_div(searched, waves * part);
    static_assert(turns * part <= 64);
    const auto first_column = [&](int turn) KILN_LAMBDA {
      const u32 of_list = turn * waves * part + platform::thread_id() / lanes, lane_part = platform::lane_id() % lanes * part;
      const u32 column = list()[of_list < listed ? of_list : 0] * group + lane_part;
      return of_list < listed ? column : static_cast<u32>(config.cols);
    };
    decltype(load_chunk<T, part>(row, 0, 0)) read[turns];
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      const u32 column = first_column(i);
      read[i] = load_chunk<T, part>(row, (column < static_cast<u32>(config.cols) ? column : 0) * static_cast<u32>(sizeof(T)), 0);
    }
    u64 hits = 0;
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      const bool exists = first_column(i) < static_cast<u32>(config.cols);
      const auto x = to<f32>(read[i]);
#pragma unroll
      for (int e = 0; e < part; ++e) hits |= exists && x[e] >= bound ? u64{1} << (i * part + e) : 0;
    }
    u32 place = place_in(&counts()[1], platform::count_lanes(hits));
    while (hits != 0 && place < static_cast<u32>(ranked)) {
      const u32 hit = platform::lowest_lane(hits);
      columns_found()[place++] = first_column(hit / part) + hit % part;
      hits &= hits - 1;
    }
    platform::barrier();
  }

  // The same of all rows: those alike in the order of their columns. A wave reads a group at a time.
  static KILN_MEMBER u32 group_of_candidate(int i) { return static_cast<u32>(i) * waves + platform::uniform(platform::thread_id() / wave_size); }
  static KILN_MEMBER u32 column_of_candidate(int i) { return platform::uniform(list()[group_of_candidate(i)]) * group + platform::lane_id(); }
  static KILN_MEMBER bool has_candidate(int i) {
    return (wanted % waves == 0 || group_of_candidate(i) < static_cast<u32>(wanted)) &&
           (config.cols % group == 0 || column_of_candidate(i) < static_cast<u32>(config.cols));
  }
  template <class T> static KILN_MEMBER void rank_all(const T* row, const u32 (&largest)[groups_a_lane]) {
    platform::barrier();
    Selection<waves> of_groups{space()}, of_columns{space()};
    of_groups.find(largest, wanted, wanted);
    of_groups.each(largest, [&](u32 place, int i) KILN_LAMBDA { list()[place] = static_cast<u32>(i) * threads + platform::thread_id(); });
    platform::barrier();
    u32 key[candidates_a_lane];
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) {
      const u32 from = has_candidate(i) ? column_of_candidate(i) : 0;
      key[i] = key_of(to<f32>(load_chunk<T, 1>(row, from * static_cast<u32>(sizeof(T)), 0))[0]);
    }
#pragma unroll
    for (int i = 0; i < candidates_a_lane; ++i) key[i] = has_candidate(i) ? key[i] : 0;
    of_columns.find(key, k, k);
    of_columns.each(key, [&](u32 place, int i) KILN_LAMBDA { found()[place] = static_cast<u64>(key[i]) << 32 | ~column_of_candidate(i); });
    platform::barrier();
    sort(found()[platform::thread_id() < k ? platform::thread_id() : 0], k, of_columns.threshold, of_columns.most);
  }

  // The first `count` lanes have a candidate each, with keys from `least` to `most`. Those of a part of that range lie side by side; a rank is
  // how many lie before the part, and how many of it come before.
  static KILN_MEMBER void sort(Candidate mine, u32 count, u32 least, u32 most) {
    const u32 lane = platform::lane_id(), range = most - least, shift = range < bins ? 0 : 24 - platform::leading_zeros(range);
    const u32 bin = (static_cast<u32>(mine >> 32) - least) >> shift;
    const bool exists = platform::thread_id() < count;
    u32 of_bin = 0;
    if (exists) of_bin = platform::add_to_each_in_workgroup(&sizes()[bin], 1);
    platform::barrier();
    if (platform::uniform(platform::thread_id() / wave_size) == 0) {
      u32 here[bins / wave_size], sum = 0;
      const u32 last = bins - 1 - bins / wave_size * lane; // from the largest down
#pragma unroll
      for (u32 i = 0; i < bins / wave_size; ++i) sum += here[i] = sizes()[last - i];
      u32 before = platform::sum_up_to_lane(sum) - sum;
#pragma unroll
      for (u32 i = 0; i < bins / wave_size; ++i) {
        firsts()[last - i] = before;
        before += here[i];
      }
    }
    platform::barrier();
    const u32 first = exists ? firsts()[bin] : 0, size = exists ? sizes()[bin] : 0;
    if (exists) found()[first + of_bin] = mine;
    platform::barrier();
    u32 rank = first;
#pragma unroll 4
    for (u32 i = 0; i < size; ++i) rank += found()[first + i] > mine ? 1 : 0;
    if (exists && rank < static_cast<u32>(k)) sorted()[rank] = ~static_cast<u32>(mine);
    platform::barrier();
  }

  // What waves with ranks have, each the same in its lanes, in the order of waves. Reductions take two sets of slots in turn: what read a
  // set lies before the barrier of the next reduction.
  template <class V, class Combine> KILN_MEMBER V combined(V value, Combine combine) const {
    static __shared__ V slots[2][waves];
    V* const own = slots[turn_++ % 2];
    own[platform::thread_id() / wave_size] = value;
    platform::barrier();
    V total = own[0];
#pragma unroll
    for (int wave = 1; wave < waves_with_ranks; ++wave) total = combine(total, own[wave]);
    return total;
  }

  mutable u32 turn_ = 0; // of reductions: known where they are compiled
  Row<config.streamed()> tile_;
  u32* counter_ = nullptr;
  f32* largest_;
};

} // namespace kiln
