// The sums of one wave over its steps of a tile, one struct a method: clear, add a step, store to LDS.
#pragma once
#include "common/dot.h"
#include "common/reduce.h"
#include "gemm_steps.h"

namespace kiln {

// `to_lds(tile)` stores the sums as tile[row of A * lds_row + product * tile_n + row of B].
template <SkinnyGemmConfig config, class A, class B, GemmMethod method> struct GemmSums;

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using S = typename SumsOf<A>::type;
  S sums[config.products][Operands::b_rows][Operands::a_rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < Operands::a_rows; ++r) sums[p][i][r] = S(0);
  }
  KILN_MEMBER void add(const Slot& slot) {
    if constexpr (has_wide_fp8_mfma && is_fp8<A> && is_fp8<B> && config.loads == 2) {
#if defined(__gfx950__)
      each([&](int p, int i, int r) KILN_LAMBDA {
        sums[p][i][r] = multiply_pair<B, A>(slot.b[p][i][0], slot.b[p][i][1], slot.a[r][0], slot.a[r][1], sums[p][i][r]);
      });
#endif
    } else {
#pragma unroll
      for (int u = 0; u < config.loads; ++u) {
        if constexpr (Operands::ratio == 1) {
          each([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = multiply<B, A>(slot.b[p][i][u], slot.a[r][u], sums[p][i][r]); });
        } else {
#pragma unroll
          for (int w = 0; w < Operands::ratio; ++w)
#pragma unroll
            for (int p = 0; p < config.products; ++p)
#pragma unroll
              for (int i = 0; i < Operands::b_rows; ++i) {
                const Word16 wide = widen<A, B>(slot.b[p][i][u], w);
#pragma unroll
                for (int r = 0; r < Operands::a_rows; ++r)
                  sums[p][i][r] = multiply<A, A>(wide, slot.a[r][u * Operands::ratio + w], sums[p][i][r]);
              }
        }
      }
    }
  }
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int r = 0; r < Operands::a_rows; ++r) {
      const u32 row = r * 16 + lane % 16;
      if (config.rows % 16 && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i)
          *reinterpret_cast<Sums*>(tile + row * config.lds_row() + p * config.tile_n + i * 16 + lane / 16 * 4) =
              __builtin_convertvector(sums[p][i][r], Sums);
    }
  }

private:
  template <class F> KILN_DEVICE void each(F f) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < Operands::a_rows; ++r) f(p, i, r);
  }
};

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::sparse> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using S = typename SumsOf<A>::type;
  S sums[config.products][Operands::b_rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i) sums[p][i] = S(0);
  }
  KILN_MEMBER void add(const Slot& slot) {
    const SparseRow row(platform::thread_id());
#pragma unroll
    for (int u = 0; u < config.loads; ++u)
#pragma unroll
      for (int w = 0; w < Operands::ratio; ++w) {
        const Vec<i32, 2> half = row.half_of<A>(slot.a[0][u * Operands::ratio + w]);
#pragma unroll
        for (int p = 0; p < config.products; ++p)
#pragma unroll
          for (int i = 0; i < Operands::b_rows; ++i) {
            if constexpr (Operands::ratio == 1) sums[p][i] = multiply_sparse<A, B>(half, row.pairs, slot.b[p][i][u], sums[p][i]);
            else sums[p][i] = multiply_sparse<A, A>(half, row.pairs, widen<A, B>(slot.b[p][i][u], w), sums[p][i]);
          }
      }
  }
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const u32 row = lane / 16 * 2 + h;
      if (config.rows < 8 && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i)
          tile[row * config.lds_row() + p * config.tile_n + i * 16 + lane % 16] =
              static_cast<f32>(sums[p][i][2 * h]) + static_cast<f32>(sums[p][i][2 * h + 1]);
    }
  }
};

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::dot> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  f32 sums[config.products][Operands::b_rows][config.rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < config.rows; ++r) sums[p][i][r] = 0;
  }
  KILN_MEMBER void add(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u)
#pragma unroll
      for (int w = 0; w < Operands::ratio; ++w) {
        Word16 b[config.products][Operands::b_rows];
#pragma unroll
        for (int p = 0; p < config.products; ++p)
#pragma unroll
          for (int i = 0; i < Operands::b_rows; ++i) {
            if constexpr (Operands::ratio == 1) b[p][i] = slot.b[p][i][u];
            else b[p][i] = widen<A, B>(slot.b[p][i][u], w);
            if constexpr (Operands::ratio > 1) platform::schedule_barrier();
          }
#pragma unroll
        for (int d = 0; d < 4; ++d) {
          DotOperand<A> a[config.rows];
#pragma unroll
          for (int r = 0; r < config.rows; ++r) a[r] = dot_operand<A>(slot.a[r][u * Operands::ratio + w][d]);
#pragma unroll
          for (int p = 0; p < config.products; ++p)
#pragma unroll
            for (int i = 0; i < Operands::b_rows; ++i) {
              const auto other = dot_operand<typename Operands::Multiplied>(b[p][i][d]);
#pragma unroll
              for (int r = 0; r < config.rows; ++r) sums[p][i][r] = add_dot<A>(a[r], other, sums[p][i][r]);
            }
          if constexpr (!has_dot<A>) platform::schedule_barrier(); // or all is converted first, into many registers
        }
      }
  }
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int r = 0; r < config.rows; ++r)
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) {
          const f32 total = across_lanes<SumOf, Operands::lanes>(sums[p][i][r]); // alike in all lanes of a row, which all store it
          tile[r * config.lds_row() + p * config.tile_n + i * config.rows_per_load() + lane / Operands::lanes] = total;
        }
  }
};

} // namespace kiln
