// The sums of one wave over its steps of a tile, one struct a method: clear, add a step, store to LDS.
#pragma once
#include "common/dot.h"
#include "common/reduce.h"
#include "skinny_gemm/steps.h"

namespace kiln {

// clear, then add and settle for each step, which may stand apart; `to_lds(tile)` stores the sums as tile[row of A * lds_row + product * tile_n + row of B].
template <SkinnyGemmConfig config, class A, class B, GemmMethod method> struct GemmSums;

// With scales of blocks, the sum of a group is formed from zero and then added times its scale. Sums are f32 then.
template <SkinnyGemmConfig config, class A> using SumOfLane = Either<config.block_scaled(), Vec<f32, config.edge() * config.edge() / wave_size>, typename SumsOf<A, config.edge()>::type>;

template <SkinnyGemmConfig config, class A, class B> struct MatrixSums {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using OfGroup = typename SumsOf<A, config.edge()>::type;
  using S = SumOfLane<config, A>;
  static constexpr int edge = config.edge();
  using Multiplied = typename Operands::Multiplied;
  S sums[config.products][Operands::b_rows][Operands::a_rows];
  // With scales of blocks: the group's sums of the last tiles of a step, which are added later, and what they are multiplied by.
  static constexpr int tiles = config.products * Operands::b_rows * Operands::a_rows;
  static constexpr int pending = !config.block_scaled() || edge == 32 ? 1 : tiles < 4 ? tiles : 4;
  OfGroup groups[pending];
  S scales[config.products][Operands::a_rows];

  KILN_MEMBER void clear() {
    each([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = S(0); });
  }
  KILN_MEMBER void add(const Slot& slot) {
    if constexpr (config.block_scaled()) {
      add_groups(slot);
    } else if constexpr (Operands::ratio == 1) {
      multiply_in_order(slot);
    } else {
#pragma unroll
      for (int u = 0; u < config.loads; ++u)
#pragma unroll
        for (int w = 0; w < Operands::ratio; ++w) {
          Word16 a[Operands::a_rows];
#pragma unroll
          for (int r = 0; r < Operands::a_rows; ++r) a[r] = slot.a_word(r, u, w);
#pragma unroll
          for (int p = 0; p < config.products; ++p)
#pragma unroll
            for (int i = 0; i < Operands::b_rows; ++i) {
              const Word16 b = slot.b_word(p, i, u, w);
#pragma unroll
              for (int r = 0; r < Operands::a_rows; ++r) sums[p][i][r] = multiply<edge, Multiplied, A>(b, a[r], sums[p][i][r]);
            }
        }
    }
  }
  // Adds what `add` left pending. To be called before the next `add`, behind other work.
  KILN_MEMBER void settle() {
    if constexpr (config.block_scaled()) {
#pragma unroll
      for (int t = (tiles - 1) / pending * pending; t < tiles; ++t) add_group(t);
    }
  }
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int r = 0; r < Operands::a_rows; ++r) {
      const u32 row = r * edge + lane % edge;
      if (config.rows % edge && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) {
          const auto numbers = convert<Numbers>(sums[p][i][r]);
#pragma unroll
          for (int q = 0; q < quads; ++q) {
            const Vec<f32, 4> four = {numbers[4 * q], numbers[4 * q + 1], numbers[4 * q + 2], numbers[4 * q + 3]};
            *reinterpret_cast<Vec<f32, 4>*>(tile + row * config.lds_row() + p * config.tile_n + i * edge + q * 8 + lane / edge * 4) = four;
          }
        }
    }
  }

private:
  static constexpr int quads = edge * edge / wave_size / 4; // of consecutive rows of B that a lane has sums of
  using Numbers = Vec<f32, 4 * quads>;
  // A matrix instruction's result is not there for up to 12 instructions: those of the next tiles stand between, and of the last
  // tiles what follows the step. The scheduler would put the sum right behind its product, and idle.
  KILN_MEMBER void add_groups(const Slot& slot) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int r = 0; r < Operands::a_rows; ++r) scales[p][r] = all_of<S>(slot.scales.scale(r, p, 0));
#pragma unroll
    for (int first = 0; first < tiles; first += pending) {
      OfGroup now[pending];
#pragma unroll
      for (int t = 0; t < pending; ++t) now[t] = OfGroup(0);
#pragma unroll
      for (int u = 0; u < config.loads; u += pairs ? 2 : 1)
#pragma unroll
        for (int t = first; t < first + pending && t < tiles; ++t) {
          multiply_at(slot, product_of(t), column_of(t), t % Operands::a_rows, u, now[t - first]);
          if (u + (pairs ? 2 : 1) < config.loads || first == 0) continue;
          add_group(t - pending);
          platform::schedule_barrier();
        }
#pragma unroll
      for (int t = tiles; t < first + pending; ++t) // groups of the round before that no tile of this one replaces
        if (first > 0) add_group(t - pending);
      platform::schedule_barrier();
#pragma unroll
      for (int t = 0; t < pending; ++t) groups[t] = now[t];
    }
  }
  KILN_DEVICE int product_of(int tile) { return tile / (Operands::b_rows * Operands::a_rows); }
  KILN_DEVICE int column_of(int tile) { return tile / Operands::a_rows % Operands::b_rows; }
  KILN_MEMBER void add_group(int t) {
    sums[product_of(t)][column_of(t)][t % Operands::a_rows] +=
        convert<S>(groups[t % pending]) * scales[product_of(t)][t % Operands::a_rows];
  }

  static constexpr bool pairs = has_scaled_mfma && is_fp8<A> && is_fp8<B> && config.loads % 2 == 0; // an instruction takes two words

  // Words of all tiles in turn: no instruction waits for the one before.
  KILN_MEMBER void multiply_in_order(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; u += pairs ? 2 : 1)
      each([&](int p, int i, int r) KILN_LAMBDA { multiply_at(slot, p, i, r, u, sums[p][i][r]); });
  }
  KILN_DEVICE void multiply_at(const Slot& slot, int p, int i, int r, int u, OfGroup& sum) {
    if constexpr (pairs) sum = multiply_pair<edge, B, A>(slot.b[p][i][u], slot.b[p][i][u + 1], slot.a[r][u], slot.a[r][u + 1], sum);
    else sum = multiply<edge, B, A>(slot.b[p][i][u], slot.a[r][u], sum);
  }
  template <class F> KILN_DEVICE void each(F f) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < Operands::a_rows; ++r) f(p, i, r);
  }
};
template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix> : MatrixSums<config, A, B> {};
template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix32> : MatrixSums<config, A, B> {};

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::sparse> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using OfGroup = typename SumsOf<A, 16>::type;
  using S = SumOfLane<config, A>;
  S sums[config.products][Operands::b_rows];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i) sums[p][i] = S(0);
  }
  KILN_MEMBER void add(const Slot& slot) {
    if constexpr (config.block_scaled()) {
      OfGroup group[config.products][Operands::b_rows];
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) group[p][i] = OfGroup(0);
      add_to(group, slot);
#pragma unroll
      for (int p = 0; p < config.products; ++p) {
        const Vec<f32, 2> even = pair_of(slot.scales.scale(0, p, 0)), odd = pair_of(slot.scales.scale(1, p, 0)); // of the lane's two rows of A
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) sums[p][i] += convert<S>(group[p][i]) * S{even[0], even[1], odd[0], odd[1]};
      }
    } else {
      add_to(sums, slot);
    }
  }
  KILN_MEMBER void settle() {} // nothing is pending
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

private:
  KILN_DEVICE void add_to(OfGroup (&to)[config.products][Operands::b_rows], const Slot& slot) {
    const SparseRow row(platform::thread_id());
#pragma unroll
    for (int u = 0; u < config.loads; ++u)
#pragma unroll
      for (int w = 0; w < Operands::ratio; ++w) {
        const Vec<i32, 2> half = row.half_of<A>(slot.a_word(0, u, w));
#pragma unroll
        for (int p = 0; p < config.products; ++p)
#pragma unroll
          for (int i = 0; i < Operands::b_rows; ++i)
            to[p][i] = multiply_sparse<A, typename Operands::Multiplied>(half, row.pairs, slot.b_word(p, i, u, w), to[p][i]);
      }
  }
};

template <SkinnyGemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::dot> {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using LaneSums = f32[config.products][Operands::b_rows][config.rows];
  LaneSums sums;

  KILN_MEMBER void clear() {
    each([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = 0; });
  }
  KILN_MEMBER void add(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      if constexpr (config.block_scaled()) { // a lane's 16 bytes of k lie in one group
        LaneSums group = {};
        add_load(group, slot, u);
        each([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] += group[p][i][r] * slot.scales.scale(r, p, u); });
      } else {
        add_load(sums, slot, u);
      }
    }
  }
  KILN_MEMBER void settle() {} // nothing is pending
  // The sums of the lanes of a row: added up where they are neighbours, else each quarter of the wave has a plane of LDS.
  KILN_MEMBER void to_lds(f32* tile) const {
    const u32 lane = platform::thread_id() % 64;
#pragma unroll
    for (int r = 0; r < config.rows; ++r)
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) {
          const u32 at = r * config.lds_row() + p * config.tile_n + i * config.rows_per_load();
          if constexpr (config.row_side_by_side()) // alike in all lanes of a row, which all store it
            tile[at + lane / Operands::lanes] = across_lanes<SumOf, Operands::lanes>(sums[p][i][r]);
          else
            tile[lane / 16 * (config.rows * config.lds_row()) + at + lane % 16] = sums[p][i][r];
        }
  }

private:
  KILN_DEVICE void add_load(LaneSums& to, const Slot& slot, int u) {
#pragma unroll
    for (int w = 0; w < Operands::ratio; ++w) {
      Word16 a_words[config.rows], b[config.products][Operands::b_rows];
#pragma unroll
      for (int r = 0; r < config.rows; ++r) a_words[r] = slot.a_word(r, u, w);
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) {
          b[p][i] = slot.b_word(p, i, u, w);
          if constexpr (Operands::ratio > 1) platform::schedule_barrier();
        }
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        DotOperand<A> a[config.rows];
#pragma unroll
        for (int r = 0; r < config.rows; ++r) a[r] = dot_operand<A>(a_words[r][d]);
#pragma unroll
        for (int p = 0; p < config.products; ++p)
#pragma unroll
          for (int i = 0; i < Operands::b_rows; ++i) {
            const auto other = dot_operand<typename Operands::Multiplied>(b[p][i][d]);
#pragma unroll
            for (int r = 0; r < config.rows; ++r) to[p][i][r] = add_dot<A>(a[r], other, to[p][i][r]);
          }
        if constexpr (!has_dot<A>) platform::schedule_barrier(); // or all is converted first, into many registers
      }
    }
  }
  template <class F> KILN_DEVICE void each(F f) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::b_rows; ++i)
#pragma unroll
        for (int r = 0; r < config.rows; ++r) f(p, i, r);
  }
};

} // namespace kiln
