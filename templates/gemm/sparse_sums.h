// GemmSums by SMFMAC: each row of A is two 4:2-structured rows of the instruction, so that 8 rows of A fill a tile of 16.
#pragma once
#include "gemm/sums.h"

namespace kiln {

template <GemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::sparse> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using OfGroup = typename SumsOf<A, 16>::type;
  using S = SumOfLane<config, A>;
  static constexpr int products = config.products, b_rows = Operands::b_rows;
  S sums[products][b_rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < products; ++p)
#pragma unroll
      for (int i = 0; i < b_rows; ++i) sums[p][i] = S(0);
  }
  KILN_MEMBER void add(const Slot& slot) {
    if constexpr (config.block_scaled()) {
      OfGroup group[products][b_rows];
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < b_rows; ++i) group[p][i] = OfGroup(0);
      add_to(group, slot);
#pragma unroll
      for (int p = 0; p < products; ++p) {
        const Vec<f32, 2> even = pair_of(slot.scales.scale(0, p, 0)), odd = pair_of(slot.scales.scale(1, p, 0)); // of the lane's two rows of A
#pragma unroll
        for (int i = 0; i < b_rows; ++i) sums[p][i] += convert<S>(group[p][i]) * S{even[0], even[1], odd[0], odd[1]};
      }
    } else {
      add_to(sums, slot);
    }
  }
  KILN_MEMBER void settle() {} // nothing is pending
  KILN_MEMBER void to_lds(f32* tile, int) const {
    const u32 lane = platform::thread_id() % wave_size;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32 row = lane / 16 * 2 + h;
      if (config.rows < 8 && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < b_rows; ++i)
          tile[row * config.lds_row() + p * config.tile_n + i * 16 + lane % 16] =
              static_cast<f32>(sums[p][i][2 * h]) + static_cast<f32>(sums[p][i][2 * h + 1]);
    }
  }

private:
  KILN_DEVICE void add_to(OfGroup (&to)[products][b_rows], const Slot& slot) {
    const SparseRow row(platform::thread_id());
#pragma unroll
    for (int u = 0; u < config.loads; ++u)
#pragma unroll
      for (int w = 0; w < Operands::ratio; ++w) {
        const Vec<i32, 2> half = row.half_of<A>(slot.a_word(0, u, w));
#pragma unroll
        for (int p = 0; p < products; ++p)
#pragma unroll
          for (int i = 0; i < b_rows; ++i)
            to[p][i] = multiply_sparse<A, typename Operands::Multiplied>(half, row.pairs, slot.b_word(p, i, u, w), to[p][i]);
      }
  }
};

} // namespace kiln
