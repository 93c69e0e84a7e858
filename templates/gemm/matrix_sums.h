// GemmSums by MFMA: tiles of 16 x 16 or 32 x 32, every word of B against every row tile of A.
#pragma once
#include "gemm/sums.h"

namespace kiln {

template <GemmConfig config, class A, class B> struct MatrixSums {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using OfGroup = typename SumsOf<A, config.edge()>::type;
  using S = SumOfLane<config, A>;
  static constexpr int edge = config.edge(), products = config.products, b_rows = Operands::b_rows, a_rows = Operands::a_rows;
  using Multiplied = typename Operands::Multiplied;
  S sums[products][b_rows][a_rows];
  // With scales of blocks: the group's sums of the last tiles of a step, which are added later, and what they are multiplied by.
  static constexpr int tiles = products * b_rows * a_rows;
  static constexpr int pending = !config.block_scaled() || edge == 32 ? 1 : tiles < 4 ? tiles : 4;
  OfGroup groups[pending];
  S scales[products][a_rows];

  Vec<f32, config.quantises_steps() ? a_rows : 1> factor; // what a lane's rows of A are multiplied by before they are rounded

  KILN_MEMBER void take_largest(const f32* largest) {
    each_row([&](int r, u32 row) KILN_LAMBDA { factor[r] = Fp8<B>::max / largest[row]; });
  }
  KILN_MEMBER void take_factors(const f32* factors) {
    each_row([&](int r, u32 row) KILN_LAMBDA { factor[r] = factors[row]; });
  }
  KILN_MEMBER void clear() {
    for_each<products, b_rows, a_rows>([&](int p, int i, int r) KILN_LAMBDA { sums[p][i][r] = S(0); });
  }
  KILN_MEMBER void add(Slot& slot) {
    if constexpr (Operands::whole_lines) slot.arrange_b();
    if constexpr (config.block_scaled()) {
      for_each<a_rows>([&](int r) KILN_LAMBDA { slot.arrange_a(r); });
      add_groups(slot);
    } else if constexpr (config.a.mx()) {
      add_of_mx(slot);
    } else if constexpr (config.quantises_steps()) {
      add_quantised(slot);
    } else if constexpr (Operands::whole_lines) {
      for_each<a_rows>([&](int r) KILN_LAMBDA { // a row tile at a time, or all are arranged first, into registers of their own
        slot.arrange_a(r);
        for (int u = 0; u < config.loads; u += words)
          for_each<products, b_rows>([&](int p, int i) KILN_LAMBDA { multiply_at(slot, p, i, r, u, sums[p][i][r]); });
        platform::schedule_barrier();
      });
    } else if constexpr (Operands::ratio == 1) {
      multiply_in_order(slot);
    } else {
#pragma unroll
      for (int u = 0; u < config.loads; ++u)
#pragma unroll
        for (int w = 0; w < Operands::ratio; ++w) {
          Word16 a[a_rows];
#pragma unroll
          for (int r = 0; r < a_rows; ++r) a[r] = slot.a_word(r, u, w);
#pragma unroll
          for (int p = 0; p < products; ++p)
#pragma unroll
            for (int i = 0; i < b_rows; ++i) {
              const Word16 b = slot.b_word(p, i, u, w);
#pragma unroll
              for (int r = 0; r < a_rows; ++r) sums[p][i][r] = multiply<edge, Multiplied, A>(b, a[r], sums[p][i][r]);
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
  KILN_MEMBER void to_lds(f32* tile, int round) const {
    const u32 lane = platform::thread_id() % wave_size;
#pragma unroll
    for (int r = 0; r < a_rows; ++r) {
      if (r * edge / config.sum_rows() != round) continue;
      const u32 row = r * edge + lane % edge;
      if (config.rows % edge && row >= static_cast<u32>(config.rows)) continue;
#pragma unroll
      for (int p = 0; p < products; ++p)
#pragma unroll
        for (int i = 0; i < b_rows; ++i) {
          const auto numbers = convert<Numbers>(sums[p][i][r]);
#pragma unroll
          for (int q = 0; q < quads; ++q) {
            const Vec<f32, 4> four = {numbers[4 * q], numbers[4 * q + 1], numbers[4 * q + 2], numbers[4 * q + 3]};
            *reinterpret_cast<Vec<f32, 4>*>(tile + (row - round * config.sum_rows()) * config.lds_row() + p * config.tile_n + i * edge + q * 8 + lane / edge * 4) = four;
          }
        }
    }
  }

protected:
  // f(r, row) of a lane's rows of A; the last one's for those beyond.
  template <class F> KILN_DEVICE void each_row(F f) {
    const u32 lane = platform::thread_id() % wave_size, last = config.rows - 1;
#pragma unroll
    for (int r = 0; r < a_rows; ++r) {
      const u32 row = r * edge + lane % edge;
      f(r, row < last ? row : last);
    }
  }
  static constexpr int quads = edge * edge / wave_size / 4; // of consecutive rows of B that a lane has sums of
  using Numbers = Vec<f32, 4 * quads>;
  // The result of a matrix instruction is there up to 12 wait states later. The instructions of the next tiles fill them; behind the
  // last tiles stands what follows the step. Barriers keep the scheduler from putting a sum right behind its product, to wait there.
  KILN_MEMBER void add_groups(const Slot& slot) {
#pragma unroll
    for (int p = 0; p < products; ++p)
#pragma unroll
      for (int r = 0; r < a_rows; ++r) scales[p][r] = all_of<S>(slot.scales.scale(r, p, 0));
#pragma unroll
    for (int first = 0; first < tiles; first += pending) {
      OfGroup now[pending];
#pragma unroll
      for (int t = 0; t < pending; ++t) now[t] = OfGroup(0);
#pragma unroll
      for (int u = 0; u < config.loads; u += words)
#pragma unroll
        for (int t = first; t < first + pending && t < tiles; ++t) {
          multiply_at(slot, product_of(t), column_of(t), t % a_rows, u, now[t - first]);
          if (u + words < config.loads || first == 0) continue;
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
  KILN_DEVICE int product_of(int tile) { return tile / (b_rows * a_rows); }
  KILN_DEVICE int column_of(int tile) { return tile / a_rows % b_rows; }
  KILN_MEMBER void add_group(int t) {
    sums[product_of(t)][column_of(t)][t % a_rows] +=
        convert<S>(groups[t % pending]) * scales[product_of(t)][t % a_rows];
  }

  // Numbers of MX formats: the instruction multiplies them by their scales, or they become bf16, which holds them times their scales.
  KILN_MEMBER void add_of_mx(const Slot& slot) {
    using Scales = typename GemmScales<config>::Operands;
    if constexpr (Scales::in_instruction) {
#pragma unroll
      for (int u = 0; u < Scales::words; ++u)
        for_each<products, b_rows, a_rows>([&](int p, int i, int r) KILN_LAMBDA {
          u32 of_b = slot.scales.scale_of_b(p, i, u), of_a = slot.scales.scale_of_a(r, u);
          platform::pin_vgpr(of_b);
          platform::pin_vgpr(of_a);
          multiply_mx_at(slot, p, i, r, u, of_b, of_a);
        });
    } else {
      constexpr int parts = 16 / config.b.bits, of_a = 16 / config.a.bits; // words of bf16 that a word makes
#pragma unroll
      for (int u = 0; u < config.loads; ++u)
#pragma unroll
        for (int w = 0; w < parts; ++w) {
          Word16 a[a_rows];
#pragma unroll
          for (int r = 0; r < a_rows; ++r) a[r] = mx_as_bf16<A>(slot.a[r][u * Operands::ratio + w / of_a], w % of_a, static_cast<u8>(slot.scales.scale_of_a(r, u)));
#pragma unroll
          for (int p = 0; p < products; ++p)
#pragma unroll
            for (int i = 0; i < b_rows; ++i) {
              const Word16 b = mx_as_bf16<B>(slot.b[p][i][u], w, static_cast<u8>(slot.scales.scale_of_b(p, i, u)));
#pragma unroll
              for (int r = 0; r < a_rows; ++r) sums[p][i][r] = multiply<edge, bf16, bf16>(b, a[r], sums[p][i][r]);
            }
        }
    }
  }
  KILN_MEMBER void multiply_mx_at(const Slot& slot, int p, int i, int r, int u, u32 of_b, u32 of_a) {
    sums[p][i][r] = multiply_mx<B, A>(mx_words(slot.b[p][i], u), mx_words(slot.a[r], u), of_b, of_a, sums[p][i][r]);
  }
  // What a lane has of 128 elements of a row: 16 bytes of 4-bit ones, 32 of others.
  template <int count> static KILN_MEMBER Vec<i32, 8> mx_words(const Word16 (&of_row)[count], int u) {
    constexpr int each = count / GemmScales<config>::Operands::words;
    return pair_of_words(of_row[u * each], of_row[u * each + each - 1]);
  }

  KILN_MEMBER void add_quantised(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; u += words) {
      Word16 a[a_rows][words];
#pragma unroll
      for (int r = 0; r < a_rows; ++r)
#pragma unroll
        for (int w = 0; w < words; ++w) {
          const int at = 2 * (u + w);
          if constexpr (config.a.norm_parts > 0)
            a[r][w] = quantised<B, A>(slot.a[r][at], slot.a[r][at + 1], factor[r], slot.weights.of[at], slot.weights.of[at + 1]);
          else a[r][w] = quantised<B, A>(slot.a[r][at], slot.a[r][at + 1], factor[r]);
          platform::pin_vgpr(a[r][w]);
        }
      for_each<products, b_rows, a_rows>([&](int p, int i, int r) KILN_LAMBDA {
        if constexpr (words == 2) sums[p][i][r] = multiply_pair<edge, B, B>(slot.b[p][i][u], slot.b[p][i][u + 1], a[r][0], a[r][1], sums[p][i][r]);
        else sums[p][i][r] = multiply<edge, B, B>(slot.b[p][i][u], a[r][0], sums[p][i][r]);
      });
    }
  }

  static constexpr int words = has_scaled_mfma && (config.a.quantises || is_fp8<A>) && is_fp8<B> && config.loads % 2 == 0 ? 2 : 1; // that an instruction takes

  // Words of all tiles in turn: no instruction waits for the one before.
  KILN_MEMBER void multiply_in_order(const Slot& slot) {
#pragma unroll
    for (int u = 0; u < config.loads; u += words)
      for_each<products, b_rows, a_rows>([&](int p, int i, int r) KILN_LAMBDA { multiply_at(slot, p, i, r, u, sums[p][i][r]); });
  }
  KILN_DEVICE void multiply_at(const Slot& slot, int p, int i, int r, int u, OfGroup& sum) {
    if constexpr (words == 2) sum = multiply_pair<edge, B, A>(slot.b[p][i][u], slot.b[p][i][u + 1], slot.a[r][u], slot.a[r][u + 1], sum);
    else sum = multiply<edge, B, A>(slot.b[p][i][u], slot.a[r][u], sum);
  }
};
template <GemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix> : MatrixSums<config, A, B> {};
template <GemmConfig config, class A, class B> struct GemmSums<config, A, B, GemmMethod::matrix32> : MatrixSums<config, A, B> {};

} // namespace kiln
