// Cluster: workgroups that share a row exchange their parts of its reductions, through places in the workspace. None of them
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
// its own parts, and nobody else's. It collects those of the others, but polls `patience` times only: then it computes a part that is
// missing itself, from the inputs of that tile, and polls again. So it ends whatever becomes of the others: they may have no room on the
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
  KILN_MEMBER void begin() const {
    latest_ = platform::load_for_device(reinterpret_cast<const u32*>(places_ + own_) + 1);
    if (waves > 1 && platform::thread_id() < max_shared_reductions) votes()[platform::thread_id()] = 0;
  }
  // Stands before the barrier behind which a wave of this workgroup may write the place that `latest` was read from.
  KILN_MEMBER void know_generation() const { latest_ = platform::pin_computed(latest_); }

  // The totals that an earlier turn collected, if it did. `first`: of the row's reductions.
  template <int first, class... A> KILN_MEMBER bool recall(A&... accumulators) const {
    if (known_ <= first) return false;
    int k = first;
    ((accumulators.total = totals_[k++]), ...);
    return true;
  }

  // Each accumulator's total is the part of `tile`, and becomes the whole row's, bit for bit the same in all workgroups, unless the turn
  // ends: then another one goes over another tile, which `tile` becomes. True: it ends. `last`: of the row's reductions.
  template <int first, bool last, class... R> KILN_MEMBER bool meet(u32& tile, Accumulator<R>&... accumulators) const {
    constexpr int N = sizeof...(R);
    const ClusterPart part[N] = {{accumulators.total, 0}...};
    f32 totals[N];
    const bool ends = exchange<first, last>(tile, part, totals, [&](const ClusterPart(&parts)[N]) KILN_LAMBDA {
      int k = 0;
      ((totals[k] = platform::uniform(across_lanes<R, lanes>(has_part() ? parts[k].value : R::identity)), ++k), ...);
    });
    int k = 0;
    ((accumulators.total = totals[k++]), ...);
    return ends;
  }
  template <int first, bool last, class R> KILN_MEMBER bool meet_found(u32& tile, Found best, f32& total) const {
    const ClusterPart part[1] = {{best.value, best.column & column_mask}};
    f32 totals[1];
    const bool ends = exchange<first, last>(tile, part, totals, [&](const ClusterPart(&parts)[1]) KILN_LAMBDA {
      const u32 column = parts[0].tag & column_mask;
      const bool none = !has_part() || column == column_mask;
      const Found found = found_across_lanes<R, lanes>({none ? R::identity : parts[0].value, none ? no_column : column});
      totals[0] = platform::uniform(found.column == no_column ? 0.0f : static_cast<f32>(found.column));
    });
    total = totals[0];
    return ends;
  }

private:
  KILN_MEMBER u32 next_generation() const { return ((latest_ >> column_bits) + 1) & 0xff; }
  KILN_DEVICE u32 lane() { return platform::lane_id() % lanes; }
  KILN_DEVICE bool has_part() { return lanes == tiles || lane() < tiles; }

  // `part`: of `tile`, without a generation. `combine` makes totals of all parts, in a wave whose lanes have one each.
  template <int first, bool last, int N, class Combine>
  KILN_MEMBER bool exchange(u32& tile, const ClusterPart (&part)[N], f32 (&totals)[N], Combine combine) const {
    ClusterPart parts[N];
    if (tile == own_) [[likely]] {
      if (platform::thread_id() == 0)
#pragma unroll
        for (int k = 0; k < N; ++k) platform::store_for_device(places_ + ((first + k) * tiles + own_), published(part[k]));
      const u64 missing = wait<first>(parts);
      if (missing != 0) [[unlikely]]
        if (all_waves_agree<first>(parts)) {
          if (platform::thread_id() == 0) *helped_tiles() = 0;
          tile = platform::lowest_lane(of_first_wave<first>(missing & all_tiles, totals)); // the totals are none yet
          return true;
        }
      combine(parts);
      if (!last) know<first>(totals); // behind the last one no other turn polls
      return false;
    }
    u64 missing = 0;
    if (waves == 1 || platform::uniform(platform::thread_id() / wave_size) == 0) { // one wave for all
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (platform::thread_id() == 0) helped<first, N>(k)[tile] = published(part[k]);
      missing = collect_beside_helped<first>(tile, parts);
      combine(parts);
    }
    missing = of_first_wave<first>(missing, totals);
    tile = missing == 0 ? own_ : platform::lowest_lane(missing);
    if (missing == 0) know<first>(totals);
    return true;
  }
  template <int first, int N> KILN_MEMBER void know(const f32 (&totals)[N]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) totals_[first + k] = totals[k];
    known_ = first + N;
  }
  KILN_MEMBER u64 published(ClusterPart part) const {
    part.tag |= next_generation() << column_bits;
    return KILN_BIT_CAST(u64, part);
  }

  // A lane loads one workgroup's parts of `N` reductions. Gives the lanes to which something is missing.
  template <int first, int N> KILN_MEMBER u64 poll(ClusterPart (&parts)[N]) const {
    static_assert(tiles <= wave_size && first + N <= max_shared_reductions);
    const u32 of = lanes == tiles ? lane() : has_part() ? lane() : static_cast<u32>(tiles - 1);
    bool late = false;
#pragma unroll
    for (int k = 0; k < N; ++k) parts[k] = bit_cast<ClusterPart>(platform::load_for_device(places_ + ((first + k) * tiles + of)));
#pragma unroll
    for (int k = 0; k < N; ++k) late = late || parts[k].tag >> column_bits != next_generation();
    return platform::lanes_where(late);
  }
  // Asks until no part is missing, or patience is lost: by each wave for itself. Gives the lanes to which parts are missing.
  template <int first, int N> KILN_MEMBER u64 wait(ClusterPart (&parts)[N]) const {
    u32 left = patience;
    u64 missing, again;
#pragma nounroll
    do {
      again = platform::pin_mask(--left != 0);
      missing = poll<first>(parts);
    } while ((missing & again) != 0);
    return missing;
  }
  // The waves of a workgroup go over another tile together, or none of them does: when all have lost patience. A wave that has still polls,
  // and takes its vote back if the parts are there after all: then those that have not voted find them too.
  template <int first, int N> KILN_MEMBER bool all_waves_agree(ClusterPart (&parts)[N]) const {
    if constexpr (waves > 1) {
      u32* const votes_here = votes() + first;
      u32 count = platform::add_in_workgroup(votes_here, 1) + 1;
#pragma nounroll
      while (count != waves) {
        const bool there = poll<first>(parts) == 0;
        count = platform::add_in_workgroup(votes_here, 0);
#pragma nounroll
        while (there && count != waves)
          if (platform::exchange_in_workgroup(votes_here, count, count - 1)) return false;
      }
    }
    return true;
  }
  // Waves of the workgroup that have lost patience, by reduction.
  KILN_DEVICE u32* votes() {
    static __shared__ u32 counts[max_shared_reductions];
    return counts;
  }

  // Tiles whose parts of the next reduction this workgroup computed, and these parts. In LDS, which costs nothing where there are none.
  KILN_DEVICE u64* helped_tiles() {
    static __shared__ u64 tiles_;
    return &tiles_;
  }
  template <int first, int N> KILN_DEVICE u64* helped(int k) {
    static __shared__ u64 parts[N][tiles];
    return parts[k];
  }
  // All parts, those that this workgroup computed where no other ones are published. Gives the tiles of which parts are missing.
  template <int first, int N> KILN_MEMBER u64 collect_beside_helped(u32 tile, ClusterPart (&parts)[N]) const {
    platform::acquire_from_device(); // what this turn read of the tile, it read before it polls whether the tile's workgroup had published
    platform::wave_barrier();
    const u64 here = *helped_tiles() | u64{1} << tile;
    platform::wave_barrier();
    if (platform::thread_id() == 0) *helped_tiles() = here;
    const u64 missing = poll<first>(parts) & all_tiles;
    const u32 of = lane() < tiles ? lane() : static_cast<u32>(tiles - 1);
    if ((here >> of & 1) != 0) {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (parts[k].tag >> column_bits != next_generation()) parts[k] = bit_cast<ClusterPart>(helped<first, N>(k)[of]);
    }
    return missing & ~here;
  }
  // What the first wave has, in all waves.
  template <int first, int N> KILN_MEMBER u64 of_first_wave(u64 missing, f32 (&totals)[N]) const {
    if constexpr (waves > 1) {
      struct Combined {
        f32 totals[N];
        u64 missing;
      };
      static __shared__ Combined combined; // a barrier of the turn's own reduction is behind the waves that read it in the turn before
      if (platform::thread_id() == 0) {
#pragma unroll
        for (int k = 0; k < N; ++k) combined.totals[k] = totals[k];
        combined.missing = missing;
      }
      platform::barrier();
#pragma unroll
      for (int k = 0; k < N; ++k) totals[k] = platform::uniform(combined.totals[k]);
      missing = static_cast<u64>(platform::uniform(static_cast<u32>(combined.missing >> 32))) << 32 | platform::uniform(static_cast<u32>(combined.missing));
    }
    return missing;
  }

  u64* places_ = nullptr; // of this row
  u32 own_ = 0;
  mutable u32 latest_ = 0; // the tag that this workgroup left last
  mutable int known_ = 0;                                   // reductions whose totals were collected
  mutable f32 totals_[max_shared_reductions] = {};         // of those
};

} // namespace kiln
