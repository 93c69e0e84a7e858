// 8-bit operands with an f32 scale for blocks: 1 x 128 of A, 128 x 128 of B.
#pragma once
#include "gemm/operands/groups.h"

namespace kiln {

// scale[row / 128][group]
template <class B> struct BlockScaled {
  const B* values;
  const f32* scale;
};

// A lane loads the scales of the rows of A that its sums belong to, and the tile's scale of B.
template <GemmConfig config> struct BlockScaleOperands {
  static constexpr int words = config.method == GemmMethod::dot ? config.loads : 1; // dot: a lane's loads lie in several groups
  static constexpr int rows = config.is_matrix() ? config.row_tiles() : config.method == GemmMethod::sparse ? 2 : config.rows;
  ScalesOfA<config, f32> a;
  const char* b[config.products];
  GroupPosition<config> position;
  u32 a_row[rows], b_row = 0;

  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* a_scale, u32 lane_k) {
    const u32 lane = platform::thread_id() % wave_size;
    a.start(row_of, a_scale);
    position.lane_k = lane_k;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      u32 row = static_cast<u32>(i);
      if constexpr (config.is_matrix()) row = i * config.edge() + lane % config.edge();
      if constexpr (config.method == GemmMethod::sparse) row = lane / 16 * 2 + i;
      row = row_of(row);
      a_row[i] = a.place(row, position.lane_fixed ? position.lane_part() : 0);
    }
  }
  template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, RowOf, Bs... matrices) {
    const u64 row = static_cast<u64>(tile) * config.tile_n / config.b.group;
    int p = 0;
    ((b[p++] = detail::scale_of(matrices) + row * config.groups() * 4), ...);
    b_row = (position.lane_fixed ? position.lane_part() : 0) * 4;
    position.at = step;
  }
  KILN_MEMBER void advance(int steps) { position.at += steps; }
};

template <GemmConfig config> struct BlockScales : PlainWords {
  using Operands = BlockScaleOperands<config>;
  f32 a[Operands::rows][Operands::words], b[config.products][Operands::words];

  KILN_MEMBER void load(Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < Operands::words; ++u) {
      const GroupIndex index = from.position.index(step, u);
#pragma unroll
      for (int p = 0; p < config.products; ++p) b[p][u] = load_of_group<f32>(from.b[p], from.b_row, index);
#pragma unroll
      for (int i = 0; i < Operands::rows; ++i) a[i][u] = from.a.load(from.a_row[i], index);
    }
  }
  KILN_MEMBER void cut(bool, int) {}
  template <class Scales> KILN_MEMBER void take_b(const Scales& from) {
#pragma unroll
    for (int p = 0; p < config.products; ++p) b[p][0] = from.b[p][0];
  }
  // What a sum of the group is multiplied by.
  KILN_MEMBER f32 scale(int row, int product, int u) const {
    return a[row][u] * b[product][u];
  }
};

} // namespace kiln
