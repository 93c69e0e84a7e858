// Cluster: workgroups that share a row tell each other their parts of its reductions, through places in the workspace. None of them
// waits for one that has not begun.
#pragma once
#include "common/found.h"
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"
#include "rowwise_config.h"

namespace kiln {

// One workgroup's part of one reduction, and its generation: how many launches have reduced this row, modulo 256. Both are written and
// read as one number, so that nothing else needs an order: no fence, no counter, and no launch has to leave zeros behind.
struct ClusterPart {
  f32 value;
  u32 tag; // the generation in the upper 8 bits, a column in the lower 24
};

// Places lie in memory as [row][reduction][workgroup]. All of a row have the same generation when a launch begins. A workgroup publishes
// its own parts, and nobody else's. It collects those of the others, but asks `patience` times only: then it computes a part that is
// missing itself, from the inputs of that tile, and asks again. So it ends whatever becomes of the others: they may have no room on the
// device while workgroups of other launches wait for partners of their own. The kernel is a loop of turns; each goes over one tile, the
// last one over the workgroup's own. What a row's workgroups store, they store in their last turn, so every tile is as it was
// until its own workgroup has published all of its parts: a part that somebody else computed is dropped if it was published meanwhile.
template <int tiles, int waves> class Cluster {
  static constexpr int lanes = power_of_two_from(tiles);
  static constexpr u64 all_tiles = ~u64{0} >> (wave_size - tiles); // bit t: tile t
  static constexpr u32 column_bits = 24, column_mask = (1u << column_bits) - 1;
  // Once a partner runs it is microseconds behind; an answer takes at least 0.2 us (docs/timing.md), so this is at least 0.2 ms.
  static constexpr u32 patience = 1024;

public:
  KILN_MEMBER Cluster() = default;
  // `reductions` of a row; `tile`: which workgroup of the row this is.
  KILN_MEMBER Cluster(void* workspace, u32 row, u32 reductions, u32 tile)
      : places_(static_cast<u64*>(workspace) + static_cast<u64>(row) * (reductions * tiles)), own_(tile) {}

  // Stands behind the first loads of inputs, so that these do not wait for it.
  KILN_MEMBER void ask_generation() const { latest_ = platform::load_for_device(reinterpret_cast<const u32*>(places_ + own_) + 1); }
  // Stands before the barrier behind which a wave of this workgroup may write the place that `latest` was read from.
  KILN_MEMBER void know_generation() const { latest_ = platform::computed_here(latest_); }

  // The totals that an earlier turn collected, if it did. `first`: of the row's reductions.
  template <int first, class... A> KILN_MEMBER bool recall(A&... accumulators) const {
    if (known_ <= first) return false;
    int k = first;
    ((accumulators.total = totals_[k++]), ...);
    return true;
  }

  // Each accumulator's total is the part of `tile`, and becomes the whole row's, bit for bit the same in all workgroups, unless the turn
  // ends: then another one goes over another tile, which `tile` becomes. True: it ends.
  template <int first, class... R> KILN_MEMBER bool meet(u32& tile, Accumulator<R>&... accumulators) const {
    constexpr int N = sizeof...(R);
    int k = 0;
    (have<first, N>(tile, k++, accumulators.total, 0), ...);
    Collected<N> all;
    if (collects()) {
      ClusterPart parts[N];
      all.missing = collect<first>(tile, parts);
      k = 0;
      ((all.totals[k] = across_lanes<R, lanes>(has_part() ? parts[k].value : R::identity), ++k), ...);
    }
    const bool ends = share<first>(tile, all);
    k = 0;
    ((accumulators.total = platform::uniform(all.totals[k++])), ...);
    return ends;
  }
  template <int first, class R> KILN_MEMBER bool meet_found(u32& tile, Found best, f32& total) const {
    have<first, 1>(tile, 0, best.value, best.column & column_mask);
    Collected<1> all;
    if (collects()) {
      ClusterPart parts[1];
      all.missing = collect<first>(tile, parts);
      const u32 column = parts[0].tag & column_mask;
      const bool none = !has_part() || column == column_mask;
      const Found found = found_across_lanes<R, lanes>({none ? R::identity : parts[0].value, none ? no_column : column});
      all.totals[0] = found.column == no_column ? 0.0f : static_cast<f32>(found.column);
    }
    const bool ends = share<first>(tile, all);
    total = platform::uniform(all.totals[0]);
    return ends;
  }

private:
  template <int N> struct Collected {
    f32 totals[N];
    u64 missing; // parts, a bit for each tile
  };
  KILN_MEMBER u32 next_generation() const { return ((latest_ >> column_bits) + 1) & 0xff; }
  KILN_DEVICE u32 lane() { return platform::lane_id() % lanes; }
  KILN_DEVICE bool has_part() { return lanes == tiles || lane() < tiles; }
  // One wave asks for all of the workgroup.
  KILN_DEVICE bool collects() { return waves == 1 || platform::uniform(platform::thread_id() / wave_size) == 0; }
  // Parts of other tiles that this workgroup computed. Its first wave alone comes here.
  template <int first, int N> KILN_DEVICE u64* helped(int k) {
    static __shared__ u64 parts[N][tiles];
    return parts[k];
  }

  // The part of `tile` is there: published if the tile is the workgroup's own, else kept here.
  template <int first, int N> KILN_MEMBER void have(u32 tile, int k, f32 value, u32 column) const {
    const u64 part = KILN_BIT_CAST(u64, (ClusterPart{value, next_generation() << column_bits | column}));
    if (platform::thread_id() != 0) return;
    if (tile == own_) platform::store_for_device(places_ + ((first + k) * tiles + tile), part);
    else helped<first, N>(k)[tile] = part;
  }

  // A lane asks for one workgroup's parts of `N` reductions. Gives the lanes to which something is missing.
  template <int first, int N> KILN_MEMBER u64 ask(ClusterPart (&parts)[N]) const {
    static_assert(tiles <= wave_size && first + N <= most_shared_reductions);
    const u32 of = lanes == tiles ? lane() : has_part() ? lane() : static_cast<u32>(tiles - 1);
    bool late = false;
#pragma unroll
    for (int k = 0; k < N; ++k) parts[k] = bit_cast<ClusterPart>(platform::load_for_device(places_ + ((first + k) * tiles + of)));
#pragma unroll
    for (int k = 0; k < N; ++k) late = late || parts[k].tag >> column_bits != next_generation();
    return platform::lanes_where(late);
  }
  // The tiles of which parts are missing.
  template <int first, int N> KILN_MEMBER u64 collect(u32 tile, ClusterPart (&parts)[N]) const {
    if (tile != own_) return collect_beside_helped<first>(tile, parts);
    u32 left = patience; // parts of other tiles are computed behind this turn
    u64 missing = 0;
#pragma nounroll
    do missing = ask<first>(parts);
    while (missing != 0 && --left != 0);
    return missing & all_tiles;
  }
  template <int first, int N> KILN_MEMBER u64 collect_beside_helped(u32 tile, ClusterPart (&parts)[N]) const {
    platform::acquire_from_device(); // what this turn read of the tile, it read before it asks whether the tile's workgroup had published
    platform::wave_barrier();
    const u64 here = helped_ | u64{1} << tile;
    const u64 missing = ask<first>(parts) & all_tiles;
    const u32 of = lane() < tiles ? lane() : static_cast<u32>(tiles - 1);
    if ((here >> of & 1) != 0) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (parts[k].tag >> column_bits != next_generation()) parts[k] = bit_cast<ClusterPart>(helped<first, N>(k)[of]);
    }
    return missing & ~here;
  }

  // Tells the other waves what the first one collected, and says whether another tile comes next.
  template <int first, int N> KILN_MEMBER bool share(u32& tile, Collected<N>& all) const {
    if constexpr (waves > 1) {
      static __shared__ Collected<N> told; // a barrier of the turn's own reduction is behind the waves that read it in the turn before
      if (platform::thread_id() == 0) told = all;
      platform::barrier();
      all = told;
      all.missing = platform::uniform(static_cast<u32>(all.missing >> 32)) * (u64{1} << 32) | platform::uniform(static_cast<u32>(all.missing));
    }
    const bool helps = tile != own_;
    if (all.missing != 0) {
      if (helps) helped_ |= u64{1} << tile;
      tile = platform::lowest_lane(all.missing);
      return true;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) totals_[first + k] = platform::uniform(all.totals[k]);
    known_ = first + N;
    helped_ = 0;
    tile = own_;
    return helps;
  }

  u64* places_ = nullptr; // of this row
  u32 own_ = 0;
  mutable u32 latest_ = 0; // the tag that this workgroup left last
  mutable int known_ = 0;                                   // reductions whose totals were collected
  mutable f32 totals_[most_shared_reductions] = {};         // of those
  mutable u64 helped_ = 0;                                  // tiles whose parts of the next reduction this workgroup computed
};

} // namespace kiln
