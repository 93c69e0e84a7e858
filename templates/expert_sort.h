// ExpertSort<config>: pairs of a token and an expert in the order of their experts, by counting, by one wave.
#pragma once
#include "counting.h"
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"
#include "expert_sort_config.h"

namespace kiln {

template <ExpertSortConfig config> class ExpertSort {
  static_assert(why_invalid(config) == nullptr, "invalid ExpertSortConfig");
  static constexpr u32 none = config.experts; // the place of pairs that name no expert

public:
  // All lanes of one wave call it. A pair's place is how many have a smaller expert, and how many of its own come before it: the same in
  // every run.
  KILN_DEVICE void run(const i32* experts, u32 pairs, i32* order, i32* offsets) {
    const u32 lane = platform::lane_id();
    for (u32 e = lane; e <= none; e += wave_size) next()[e] = 0;
    platform::wave_barrier();
    each(experts, pairs, [&](u32, u32) KILN_LAMBDA {});
    // From counts to first places.
    u32 before = 0;
    for (u32 first = 0; first <= none; first += wave_size) {
      const u32 e = first + lane, count = e <= none ? next()[e] : 0, up_to = platform::sum_up_to_lane(count);
      platform::wave_barrier();
      if (e <= none) {
        next()[e] = before + up_to - count;
        offsets[e] = static_cast<i32>(before + up_to - count);
      }
      before += platform::read_lane(up_to, wave_size - 1);
    }
    platform::wave_barrier();
    each(experts, pairs, [&](u32 pair, u32 place) KILN_LAMBDA { order[place] = static_cast<i32>(pair); });
  }

private:
  static KILN_MEMBER u32 (&next())[config.experts + 1] {
    static __shared__ u32 memory[config.experts + 1];
    return memory;
  }
  // Takes the next place of its expert for every pair, in their order: f(pair, place). The next round's experts are on their way.
  template <class F> KILN_DEVICE void each(const i32* experts, u32 pairs, F f) {
    const u32 lane = platform::lane_id();
    i32 coming = lane < pairs ? experts[lane] : 0;
    for (u32 first = 0; first < pairs; first += wave_size) {
      const bool exists = first + lane < pairs;
      const u32 named = exists ? static_cast<u32>(coming) : none, expert = named < none ? named : none;
      const u32 after = first + wave_size + lane;
      coming = experts[after < pairs ? after : pairs - 1];
      const u32 place = take_place<none>(next(), exists, expert);
      if (exists) f(first + lane, place);
    }
  }
};

// The same in a workgroup whose lanes have stored `experts` before; all of them call it.
template <int experts_of_all> KILN_DEVICE void sort_by_expert(const i32* experts, u32 pairs, i32* order, i32* offsets) {
  platform::release_to_workgroup();
  platform::barrier();
  platform::acquire_from_workgroup();
  if (platform::thread_id() < wave_size) ExpertSort<ExpertSortConfig{experts_of_all}>::run(experts, pairs, order, offsets);
}

} // namespace kiln
