// GemmTiles: the tiles of one matrix, in sequence. gemm/by_expert.h has those of a matrix for each expert.
#pragma once
#include "gemm/segment.h"
#include "gemm_config.h"
#include "stream_k_config.h"

namespace kiln {

// The place of a chunk of a tile in the result, and how many rows that has. Column n: none.
struct TilePlace {
  u32 row, column, rows;
};

template <GemmConfig config, bool by_expert = config.by_expert()> struct GemmTiles {
  using Segment = GemmSegment;
  using Runs = StepRuns<config.workgroups, config.steps(), config.run_unit()>;
  static constexpr u32 tile_steps = config.steps_per_tile();
  u32 rows;

  KILN_DEVICE Runs runs() { return {config.steps()}; }
  // The run of a workgroup.
  KILN_DEVICE u32 run_of(u32 block, const Runs&) { return workgroup_in_order(block, config.workgroups); }
  template <class Steps> KILN_MEMBER void start(Steps& steps, u32 wave, const void* a_scale) const { steps.start(rows, wave, a_scale); }
  // The first segment of a workgroup that has `left` steps, and the one behind another.
  template <class Stream> KILN_DEVICE Segment first(const Stream& stream, u32 left) {
    const u32 tile = stream.first_step() / tile_steps, at = stream.first_step() - tile * tile_steps;
    return {tile, at, smaller(tile_steps - at, left)};
  }
  KILN_DEVICE Segment after(const Segment& s, u32 left) { return {s.tile + 1, 0, smaller(tile_steps, left)}; }
  KILN_DEVICE u32 first_step_of(const Segment& s) { return s.tile * tile_steps; } // of its tile
  template <class Matrix> KILN_DEVICE Matrix matrix(const Segment&, Matrix b) { return b; }
  KILN_MEMBER TilePlace place(const Segment& s, u32 row, u32 column) const { return {row, s.tile * config.tile_n + column, rows}; }
};

} // namespace kiln
