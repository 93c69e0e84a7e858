// GemmSums without matrix instructions: dot products of packed numbers, added up across the lanes of a row at the end.
#pragma once
#include "common/dot.h"
#include "common/reduce.h"
#include "gemm/sums.h"

namespace kiln {

template <GemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::dot> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  static constexpr int products = config.products, b_rows = Operands::b_rows, rows = config.rows;
  using LaneSums = f32[products][b_rows][rows];
  LaneSums sums;

  KILN_MEMBER void clear() {
    for_each<products, b_rows, rows>([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = 0; });
  }
  KILN_MEMBER void add(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      if constexpr (config.block_scaled()) { // a lane's 16 bytes of k lie in one group
        LaneSums group = {};
        add_load(group, slot, u);
        for_each<products, b_rows, rows>([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] += group[p][i][r] * slot.scales.scale(r, p, u); });
      } else {
        add_load(sums, slot, u);
      }
    }
  }
  KILN_MEMBER void settle() {} // nothing is pending
  // Lanes of a row that are neighbours add up their sums; else each quarter of the wave has a plane of LDS.
  KILN_MEMBER void to_lds(f32* tile, int) const {
    const u32 lane = platform::thread_id() % wave_size;
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < b_rows; ++i) {
          const u32 at = r * config.lds_row() + p * config.tile_n + i * config.rows_per_load();
          if constexpr (config.row_side_by_side()) // alike in all lanes of a row, which all store it
            tile[at + lane / Operands::lanes] = across_lanes<SumOf, Operands::lanes>(sums[p][i][r]);
          else
            tile[lane / 16 * (rows * config.lds_row()) + at + lane % 16] = sums[p][i][r];
        }
  }

private:
  KILN_DEVICE void add_load(LaneSums& to, const Slot& slot, int u) {
#pragma unroll
    for (int w = 0; w < Operands::ratio; ++w) {
      Word16 a_words[rows], b[products][b_rows];
#pragma unroll
      for (int r = 0; r < rows; ++r) a_words[r] = slot.a_word(r, u, w);
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < b_rows; ++i) {
          b[p][i] = slot.b_word(p, i, u, w);
          if constexpr (Operands::ratio > 1) platform::schedule_barrier();
        }
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        DotOperand<A> a[rows];
#pragma unroll
        for (int r = 0; r < rows; ++r) a[r] = dot_operand<A>(a_words[r][d]);
#pragma unroll
        for (int p = 0; p < products; ++p)
#pragma unroll
          for (int i = 0; i < b_rows; ++i) {
            const auto other = dot_operand<typename Operands::Multiplied>(b[p][i][d]);
#pragma unroll
            for (int r = 0; r < rows; ++r) to[p][i][r] = add_dot<A>(a[r], other, to[p][i][r]);
          }
        if constexpr (!has_dot<A>) platform::schedule_barrier(); // or all is converted first, into many registers
      }
    }
  }
};

} // namespace kiln
