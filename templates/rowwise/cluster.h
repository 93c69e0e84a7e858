// Cluster: workgroups that share a row tell each other their parts of its reductions, through places in the workspace.
#pragma once
#include "common/found.h"
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"

namespace kiln {

// One workgroup's part of one reduction, and its generation: how many launches have reduced this row, modulo 256. Both are written and
// read as one number, so that nothing else needs an order: no fence, no counter, and no launch has to leave zeros behind.
struct ClusterPart {
  f32 value;
  u32 tag; // the generation in the upper 8 bits, a column in the lower 24
};

// Places lie in memory as [row][reduction][workgroup]. All of a row have the same generation when a launch begins. A workgroup waits
// until all parts have the next one; the host offers clusters only where all workgroups of a launch are resident.
template <int tiles> class Cluster {
  static constexpr int lanes = power_of_two_from(tiles);
  static constexpr u32 column_bits = 24, column_mask = (1u << column_bits) - 1;

public:
  KILN_MEMBER Cluster() = default;
  // `reductions` of a row; `tile`: which workgroup of the row this is.
  KILN_MEMBER Cluster(void* workspace, u32 row, u32 reductions, u32 tile)
      : places_(static_cast<u64*>(workspace) + static_cast<u64>(row) * (reductions * tiles)), tile_(tile) {
    latest_ = bit_cast<ClusterPart>(platform::load_for_device(places_ + tile_)).tag;
  }

  // Stands before the barrier behind which a wave of this workgroup may write the place that `latest` was read from.
  KILN_MEMBER void know_generation() const { latest_ = platform::computed_here(latest_); }

  // Each accumulator's total becomes the whole row's, bit for bit the same in all workgroups. `first`: of the row's reductions.
  template <int first, class... R> KILN_MEMBER void meet(Accumulator<R>&... accumulators) const {
    ClusterPart parts[sizeof...(R)];
    int k = 0;
    (tell(first + k++, accumulators.total, 0), ...);
    hear<first>(parts);
    k = 0;
    ((accumulators.total = platform::uniform(across_lanes<R, lanes>(has_part() ? parts[k].value : R::identity)), ++k), ...);
  }
  template <int first, class R> KILN_MEMBER Found meet_found(Found best) const {
    ClusterPart parts[1];
    tell(first, best.value, best.column & column_mask);
    hear<first>(parts);
    const u32 column = parts[0].tag & column_mask;
    const bool none = !has_part() || column == column_mask;
    return found_across_lanes<R, lanes>({none ? R::identity : parts[0].value, none ? no_column : column});
  }

private:
  KILN_MEMBER u32 next() const { return ((latest_ >> column_bits) + 1) & 0xff; }
  KILN_DEVICE u32 lane() { return platform::lane_id() % lanes; }
  KILN_DEVICE bool has_part() { return lanes == tiles || lane() < tiles; }

  KILN_MEMBER void tell(int reduction, f32 value, u32 column) const {
    const ClusterPart part{value, next() << column_bits | column};
    if (platform::thread_id() == 0) platform::store_for_device(places_ + (reduction * tiles + tile_), KILN_BIT_CAST(u64, part));
  }
  // Waits until all workgroups have told `N` reductions; each lane has one workgroup's parts then.
  template <int first, int N> KILN_MEMBER void hear(ClusterPart (&parts)[N]) const {
    static_assert(tiles <= wave_size, "a lane reads the part of a workgroup");
    const u32 of = lanes == tiles ? lane() : has_part() ? lane() : static_cast<u32>(tiles - 1);
    bool late;
    do {
      late = false;
#pragma unroll
      for (int k = 0; k < N; ++k) parts[k] = bit_cast<ClusterPart>(platform::load_for_device(places_ + ((first + k) * tiles + of)));
#pragma unroll
      for (int k = 0; k < N; ++k) late = late || parts[k].tag >> column_bits != next();
    } while (platform::any_lane(late));
  }

  u64* places_ = nullptr; // of this row
  u32 tile_ = 0;
  mutable u32 latest_ = 0; // the tag that this workgroup left last
};

} // namespace kiln
