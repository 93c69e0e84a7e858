// Prefetched: operands of the epilogue that a workgroup prefetches while its last steps come, so that they lie in a cache when it needs them.
#pragma once
#include "common/platform.h"
#include "gemm_config.h"

namespace kiln {

// Words of four bytes of an operand: a lane's lies at tile * of_tile + lane * of_lane, and none beyond `last`. In bytes.
struct PrefetchedOperand {
  const char* base;
  u32 of_tile, of_lane, last;
};

// One value a column, and one value of four bytes per row.
template <GemmConfig config, class T> KILN_DEVICE PrefetchedOperand prefetched_columns(const T* columns) {
  constexpr u32 of_tile = config.tile_n * sizeof(T), of_lane = of_tile / wave_size < 4 ? 4 : of_tile / wave_size;
  return {reinterpret_cast<const char*>(columns), of_tile, of_lane, config.n * static_cast<u32>(sizeof(T)) - 4};
}
template <class T> KILN_DEVICE PrefetchedOperand prefetched_rows(const T* rows, u32 count) {
  static_assert(sizeof(T) == 4);
  return {reinterpret_cast<const char*>(rows), 0, 4, (count - 1) * 4};
}

template <int N> struct Prefetched {
  struct Words {
    u32 at[N];
  };
  PrefetchedOperand operands[N];

  // Asks for what the epilogue of a tile needs. The words are to be kept until then, so that the loads are not dropped.
  KILN_MEMBER Words load(u32 tile) const {
    Words words;
    const u32 lane = platform::lane_id();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const u32 offset = tile * operands[i].of_tile + lane * operands[i].of_lane;
      words.at[i] = *reinterpret_cast<const u32*>(operands[i].base + (offset < operands[i].last ? offset : operands[i].last));
    }
    return words;
  }
};
struct NothingNear {
  struct Words {};
  KILN_MEMBER Words load(u32) const { return {}; }
};

} // namespace kiln
