// Counting sorts: the places of a wave's items in the order of their bins.
#pragma once
#include "common/lane_instructions.h"

namespace kiln {

// The place of this lane's item, where `next[bin]` is that of the next item of each bin: items of one bin lie in the order of lanes. Bins are
// from 0 to `last_bin`; all lanes of a wave call it, those without an item with any bin of these.
template <u32 last_bin> KILN_DEVICE u32 take_place(u32* next, bool exists, u32 bin) {
  const u64 all = platform::lanes_where(exists);
  u32 low = static_cast<u32>(all), high = static_cast<u32>(all >> 32); // lanes of the same bin
#pragma unroll
  for (int bit = 0; last_bin >> bit != 0; ++bit) {
    const auto own = static_cast<u32>(static_cast<i32>(bin << (31 - bit)) >> 31); // in all bits
    const u64 set = platform::lanes_where(own != 0);
    low &= ~(static_cast<u32>(set) ^ own);
    high &= ~(static_cast<u32>(set >> 32) ^ own);
  }
  const u64 alike = static_cast<u64>(high) << 32 | low;
  const u32 nth = platform::lanes_below(alike), at = next[bin];
  platform::wave_barrier();
  if (exists && nth == 0) next[bin] = at + platform::count_lanes(alike);
  platform::wave_barrier();
  return at + nth;
}

} // namespace kiln
