// RowwiseConfig: how a workgroup covers rows of a [rows, cols] iteration space. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

// What a later pass needs again stays in registers, in LDS, or nowhere: then it is read from memory again.
enum class Residency { registers, lds, reload };

inline constexpr int max_shared_reductions = 16; // of a row that several workgroups share

struct RowwiseConfig {
  int cols = 0;            // elements of a row
  int vec = 1;             // consecutive elements that a lane handles at a time
  int threads_per_row = 0; // a power of two; at most one row per workgroup when over one wave
  int rows_per_block = 1;
  int tiles = 1;           // workgroups that share a row; with reductions, they are a cluster: templates/rowwise/cluster.h
  int prefetch_depth = 1;           // chunks of a tensor whose loads are in flight at a time
  Residency residency = Residency::registers;
  int waves_per_eu = 0;    // of a SIMD, that registers have to leave room for; 0: as many as they do

  constexpr int threads() const { return threads_per_row * rows_per_block; }
  constexpr int waves_per_row() const { return ceil_div(threads_per_row, wave_size); }
  // A chunk is `vec` elements of each lane; a lane has `chunks` of them in its tile.
  constexpr int row_chunks() const { return ceil_div(cols, threads_per_row * vec); }
  constexpr int chunks() const { return row_chunks() / tiles; }
  constexpr int tile_cols() const { return chunks() * threads_per_row * vec; }
  // Whether all lanes have elements in all chunks. Then each wave covers a contiguous piece of the row, and chunks of
  // a lane lie a wave's width apart (constant offsets fit the instruction); else chunks are a row's threads apart, so
  // that at most the last one of a row is partial.
  constexpr bool exact() const { return tile_cols() * tiles == cols; }
  // Rows end within a lane's elements. Their starts are aligned to elements only, which costs nothing but cache lines.
  constexpr bool ragged() const { return cols % vec != 0; }
  constexpr int chunk_stride() const { return (exact() && threads_per_row > wave_size ? wave_size : threads_per_row) * vec; }
  constexpr bool unrolled() const { return residency == Residency::registers; }

  bool operator==(const RowwiseConfig&) const = default;
};

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const RowwiseConfig& c) {
  if (c.cols < 1 || c.cols > 1 << 24) return "cols must be from 1 to 16777216";
  if (!is_power_of_two(c.vec) || c.vec > 16) return "vec must be 1, 2, 4, 8 or 16";
  if (!is_power_of_two(c.threads_per_row) || c.threads_per_row > max_workgroup_size) return "threads_per_row must be a power of two up to 1024";
  if (c.rows_per_block < 1) return "rows_per_block must be at least 1";
  if (c.threads_per_row > wave_size && c.rows_per_block > 1) return "rows_per_block must be 1 when a row takes more than one wave";
  if (c.threads() > max_workgroup_size || c.threads() % wave_size) return "threads_per_row * rows_per_block must be a multiple of 64 up to 1024";
  if (c.tiles < 1 || c.row_chunks() % c.tiles) return "tiles must divide the chunks of a row";
  if (c.prefetch_depth < 1 || c.prefetch_depth > c.chunks()) return "prefetch_depth must be from 1 to the chunks of a lane";
  if (c.residency == Residency::registers && c.chunks() > 64) return "residency registers takes at most 64 chunks per lane";
  return why_invalid_waves_per_eu(c.waves_per_eu);
}

} // namespace kiln
