// RowSort<config>: rows in the order of their elements, the largest first and of those alike the first one. A workgroup has a row, and sorts
// it by one digit of its elements' keys after the other, the lowest first, by counting.
#pragma once
#include "counting.h"
#include "common/memory_instructions.h"
#include "row_sort_config.h"
#include "rowwise/ranks.h"
#include "rowwise/whole_row.h"

namespace kiln {

template <RowSortConfig config> class RowSort : public WholeRow<config.cols> {
  static_assert(why_invalid(config) == nullptr, "invalid RowSortConfig");
  static constexpr u32 cols = config.cols, bins = config.bins, waves = config.waves, threads = config.threads(), key_bits = 32, digit_bits = 8;
  static constexpr u32 bins_a_lane = bins / wave_size;
  static constexpr u32 depth = config.in_lds ? 1 : 4; // loads in flight, of the list in memory
  using WholeRow<config.cols>::row_, WholeRow<config.cols>::store_one;
  using Item = u64; // an element's key, smaller for larger elements, and its column

public:
  KILN_MEMBER RowSort(u32, void* workspace) : WholeRow<config.cols>(platform::block_x()) {
    if constexpr (config.in_lds) lists_ = lists_in_lds();
    else lists_ = static_cast<Item*>(workspace) + static_cast<u64>(row_) * 2 * cols;
  }

  template <class T> KILN_MEMBER void sort(const T* row) {
    shift_ = sizeof(T) == 1 || __is_same(T, bf16) ? 16 : __is_same(T, f16) ? 8 : 0; // bits that are alike in all numbers of a sign
    by_digit([&](u32 column) KILN_LAMBDA {
      const f32 x = to<f32>(load_chunk<T, 1>(row, column * static_cast<u32>(sizeof(T)), 0))[0];
      return static_cast<u64>(~detail::in_order(x != x ? -platform::infinity : x)) << 32 | column;
    });
#pragma nounroll
    while (shift_ < key_bits) {
      const Item* const from = list_at(shift_);
      by_digit([&](u32 place) KILN_LAMBDA { return from[place]; });
    }
  }

  // The ranks of this lane, one after the other.
  KILN_MEMBER bool has_rank() const { return rank_ < static_cast<u32>(config.ranks); }
  KILN_MEMBER void next_rank() { rank_ += threads; }
  KILN_MEMBER u32 rank_index() const { return rank_; }
  struct Top {
    f32 columns;
  };
  KILN_MEMBER Top top() const { return {static_cast<f32>(static_cast<u32>(list_at(key_bits)[rank_]))}; }
  template <int count, class T, class V> KILN_MEMBER void store_ranks(T* tensor, V value, u64 row_stride = count) const {
    store_one(tensor + row_ * row_stride + rank_, value);
  }
  template <class T, class V> KILN_MEMBER void store_of_row(T* tensor, V value, u64 row_stride = 1) const {
    if (rank_ == 0) store_one(tensor + row_ * row_stride, value);
  }

private:
  static KILN_MEMBER Item* lists_in_lds() {
    static __shared__ Item memory[config.in_lds ? 2 * cols : 1];
    return memory;
  }
  static KILN_MEMBER u32 (&places())[waves][bins] { // of the next item of each bin, by wave
    static __shared__ u32 memory[waves][bins];
    return memory;
  }
  static KILN_MEMBER u32 (&sizes())[bins] {
    static __shared__ u32 memory[bins];
    return memory;
  }
  // The list that is in order by so many bits.
  KILN_MEMBER Item* list_at(u32 shift) const { return lists_ + (shift / digit_bits % 2) * cols; }

  // Sorts what load(place) gives by the next digit: places that are alike keep their order.
  template <class Load> KILN_MEMBER void by_digit(Load load) {
    const u32 wave = platform::uniform(platform::thread_id() / wave_size), lane = platform::lane_id();
    u32* const next = places()[wave];
#pragma unroll
    for (u32 i = 0; i < bins_a_lane; ++i) next[i * wave_size + lane] = 0;
    platform::wave_barrier();
    each(load, [&](Item item, bool exists) KILN_LAMBDA {
      if (exists) platform::add_to_each_in_workgroup(&next[digit(item)], 1);
    });
    platform::barrier();
    sum_over_waves();
    platform::barrier();
    sum_over_bins(next);
    Item* const to = list_at(shift_ + digit_bits);
    each(load, [&](Item item, bool exists) KILN_LAMBDA {
      const u32 place = take_place<bins - 1>(next, exists, digit(item));
      if (exists) to[place] = item;
    });
    shift_ += digit_bits;
    platform::release_to_workgroup();
    platform::barrier();
    platform::acquire_from_workgroup();
  }

  KILN_MEMBER u32 digit(Item item) const { return static_cast<u32>(item >> (32 + shift_)) % bins; }

  // f(item, whether there is one) for all items of this wave in their order.
  template <class Load, class F> KILN_MEMBER void each(Load load, F f) const {
    const u32 wave = platform::uniform(platform::thread_id() / wave_size), lane = platform::lane_id();
    const u32 begin = wave * static_cast<u32>(config.wave_cols()), limit = begin + static_cast<u32>(config.wave_cols());
    const u32 end = limit < cols ? limit : cols;
#pragma nounroll
    for (u32 first = begin; first < end; first += depth * wave_size) {
      Item items[depth];
#pragma unroll
      for (u32 i = 0; i < depth; ++i) {
        const u32 place = first + i * wave_size + lane;
        items[i] = load(place < cols ? place : cols - 1);
      }
#pragma unroll
      for (u32 i = 0; i < depth; ++i) f(items[i], first + i * wave_size + lane < end);
    }
  }

  // From counts of waves to those of the waves before; and the counts of all.
  static KILN_MEMBER void sum_over_waves() {
#pragma unroll
    for (u32 first = 0; first < bins; first += threads) {
      const u32 bin = first + platform::thread_id();
      if (bin >= bins) continue;
      u32 before = 0;
#pragma unroll
      for (u32 wave = 0; wave < waves; ++wave) {
        const u32 count = places()[wave][bin];
        places()[wave][bin] = before;
        before += count;
      }
      sizes()[bin] = before;
    }
  }
  // Adds the items of smaller bins: each wave to its own places.
  static KILN_MEMBER void sum_over_bins(u32* next) {
    const u32 first = platform::lane_id() * bins_a_lane;
    u32 here[bins_a_lane], sum = 0;
#pragma unroll
    for (u32 i = 0; i < bins_a_lane; ++i) sum += here[i] = sizes()[first + i];
    u32 before = platform::sum_up_to_lane(sum) - sum;
#pragma unroll
    for (u32 i = 0; i < bins_a_lane; ++i) {
      next[first + i] += before;
      before += here[i];
    }
    platform::wave_barrier();
  }

  u32 shift_ = 0; // bits of the keys by which the list is in order
  u32 rank_ = platform::thread_id();
  Item* lists_;
};

} // namespace kiln
