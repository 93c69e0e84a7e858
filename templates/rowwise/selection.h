// Selection: of the keys that the lanes of a workgroup have, the largest ones, and their order.
#pragma once
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"
#include "rowwise/ranks.h"

namespace kiln {

// What the waves of a workgroup share while they select. Keys are in_order() of numbers; 0 is nothing.
template <int waves> struct SelectionSpace {
  static constexpr int rounds = 4, bins = 256, max_keys = 32; // of a lane
  u32 counts[rounds][bins];
  u32 places[max_keys * waves];
  u32 most[waves], least[waves];
};

template <int waves> struct Selection {
  static constexpr int threads = waves * wave_size;
  using Space = SelectionSpace<waves>;
  Space& space;
  u32 threshold = 0, ties = ~0u; // what is above it is selected, and so many that equal it: the first ones
  u32 above = 0, most = 0;       // keys above the threshold, and the largest one

  // Finds the `wanted`-th largest of all keys that are not 0; there are so many. Key i of thread t has the place i * threads + t. With more
  // `room` it ends at a lower threshold that no more keys than that are above.
  template <int N> KILN_MEMBER void find(const u32 (&key)[N], u32 wanted, u32 room) {
    for (u32 i = platform::thread_id(); i < Space::rounds * Space::bins; i += threads) space.counts[i / Space::bins][i % Space::bins] = 0;
    const u32 least = find_extremes(key);
    u32 low = most == least ? 0 : 32 - platform::leading_zeros(most ^ least); // bits that keys differ in, from the right
    u64 prefix = static_cast<u64>(most) >> low;
#pragma nounroll
    for (u32 round = 0; low > 0; ++round) {
      const u32 width = low < 8 ? low : 8, from = low;
      low -= width;
      const auto of_prefix = static_cast<u32>(~u64{0} << from), begin = static_cast<u32>(prefix << from); // all have the first one
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (key[i] != 0 && (key[i] & of_prefix) == begin)
          platform::add_to_each_in_workgroup(&space.counts[round][key[i] >> low & ((1u << width) - 1)], 1);
      platform::barrier();
      const auto [bin, before, inside] = bin_of(space.counts[round], wanted);
      wanted -= before;
      above += before;
      prefix = prefix << width | bin;
      if (above + inside <= room) { // all of the bin
        above += inside;
        threshold = platform::max(static_cast<u32>(prefix << low), 1u) - 1;
        return;
      }
    }
    threshold = static_cast<u32>(prefix);
    ties = wanted;
  }

  KILN_MEMBER bool selects_all_ties() const { return ties == ~0u; }

  // Calls put(place, i) for each selected key of this lane: places count the selected ones in the order of their own places.
  template <int N, class Put> KILN_MEMBER void each(const u32 (&key)[N], Put put) const {
    static_assert(N <= Space::max_keys);
    const u32 lane = platform::lane_id(), wave = platform::uniform(platform::thread_id() / wave_size);
    const auto is_tie = [&](u32 one) KILN_LAMBDA { return one == threshold && ties != ~0u; };
#pragma unroll
    for (int i = 0; i < N; ++i) { // the lanes are found anew below: kept, they take more scalar registers than there are
      const u32 over = platform::count_lanes(platform::lanes_where(key[i] > threshold)), equal = platform::count_lanes(platform::lanes_where(is_tie(key[i])));
      if (lane == 0) space.places[i * waves + wave] = over | equal << 16;
    }
    platform::barrier();
    if (wave == 0) sum_places<N>();
    platform::barrier();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const u32 again = platform::opaque_registers(key[i]), before = space.places[i * waves + wave];
      const u32 over_before = (before & 0xffff) + platform::lanes_below(platform::lanes_where(again > threshold));
      const u32 equal_before = (before >> 16) + platform::lanes_below(platform::lanes_where(is_tie(again)));
      if (again > threshold || (is_tie(again) && equal_before < ties)) put(over_before + (equal_before < ties ? equal_before : ties), i);
    }
  }

private:
  // The largest key becomes `most`; the smallest that is not 0 comes back.
  template <int N> KILN_MEMBER u32 find_extremes(const u32 (&key)[N]) {
    u32 inverse = 0; // of the smallest: what is nothing has the smallest inverse
#pragma unroll
    for (int i = 0; i < N; ++i) {
      most = platform::max(most, key[i]);
      inverse = platform::max(inverse, key[i] ? ~key[i] : 0u);
    }
    const u32 wave = platform::thread_id() / wave_size, lane = platform::lane_id();
    space.most[wave] = detail::largest_of_wave(most);
    space.least[wave] = detail::largest_of_wave(inverse);
    platform::barrier();
    most = platform::uniform(detail::largest_of_wave(space.most[lane % waves]));
    return ~platform::uniform(detail::largest_of_wave(space.least[lane % waves]));
  }

  struct Bin {
    u32 bin, before, inside; // keys in the bins above it, and in it
  };
  // The bin in which the `wanted`-th largest lies: each wave finds it, from the largest bin down, four a lane.
  static KILN_MEMBER Bin bin_of(const u32 (&counts)[Space::bins], u32 wanted) {
    const u32 lane = platform::lane_id(), first = Space::bins - 4 - 4 * lane;
    const u32 here[4] = {counts[first + 3], counts[first + 2], counts[first + 1], counts[first]};
    const u32 sum = here[0] + here[1] + here[2] + here[3], up_to = platform::sum_up_to_lane(sum);
    const auto found = static_cast<u32>(platform::first_lane(up_to >= wanted));
    u32 before = up_to - sum, bin = first + 3, inside = here[0];
#pragma unroll
    for (u32 i = 1; i < 4; ++i) {
      const bool beyond = before + inside < wanted;
      before += beyond ? inside : 0;
      bin -= beyond ? 1 : 0;
      inside = beyond ? here[i] : inside;
    }
    return {platform::read_lane(bin, found), platform::read_lane(before, found), platform::read_lane(inside, found)};
  }

  // Counts become sums of those before them; halves of a word stay apart, as there are at most 16384 keys.
  template <int N> KILN_MEMBER void sum_places() const {
    constexpr int words = N * waves, each = ceil_div(words, wave_size);
    const u32 first = platform::lane_id() * each;
    u32 here[each], sum = 0;
#pragma unroll
    for (int i = 0; i < each; ++i) sum += here[i] = first + i < words ? space.places[first + i] : 0;
    u32 before = platform::sum_up_to_lane(sum) - sum;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (first + i < words) space.places[first + i] = before;
      before += here[i];
    }
  }
};

} // namespace kiln
