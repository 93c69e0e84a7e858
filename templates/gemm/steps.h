// Steps of a skinny GEMM: what a lane loads for one step along k, and how it is multiplied. One struct a method.
#pragma once
#include "common/lane_instructions.h"
#include "common/loops.h"
#include "common/matrix.h"
#include "common/memory.h"
#include "common/reduce.h"
#include "gemm/operands/operands.h"
#include "gemm/staged_rows.h"

namespace kiln {

// Addresses of a lane's loads: uniform ones that move along k, and the lane's offsets from them.
template <GemmConfig config, class A, class B> struct GemmOperands {
  static constexpr int lanes = config.lanes_per_row();
  using Multiplied = Either<sizeof(A) == sizeof(B), B, A>; // what B's elements are when they are multiplied
  static constexpr int ratio = config.step_a_bits() / config.b.bits; // words of A that go with a word of B
  static constexpr int b_rows = config.tile_n / config.rows_per_load(); // loads that cover the rows of a tile
  static constexpr int a_rows = config.method == GemmMethod::dot ? config.rows : config.method == GemmMethod::sparse ? 1 : config.row_tiles();
  static constexpr bool tail = config.k_tail();
  // A load has whole lines of eight rows. Two of them make two words of each of 16 rows, which lanes exchange (GemmSlot::arrange).
  static constexpr bool whole_lines = config.whole_lines();
  static constexpr int offsets = whole_lines ? 2 : 1; // of the loads of a row tile
  // Scaled matrix instructions take 16 bytes of each half of 128 elements of 8 bits, where 4-bit ones lie 32 in sequence.
  static constexpr bool a_in_halves = config.a.mx() && ratio == 2 && has_scaled_mfma;
  static constexpr u32 a_word_bytes = a_in_halves ? 64 : 16; // from a word of A to the next one of the load
  using Scales = typename GemmScales<config>::Operands;

  static constexpr bool normed = config.a.norm_parts > 0 && !config.staged;

  const char* a;
  const char *weights, *weight; // of A's columns, if its rows are normed: the first one, and that of the step
  u32 weight_offset;
  u32 staged = 0; // bytes of A's rows in LDS before the step that the addresses are at
  const char* b[config.products];
  u32 lane_k = 0; // with a tail of k: this lane's first byte of B's rows in the step that the addresses are at
  u32 b_offset[b_rows][offsets], a_offset[a_rows][offsets];
  [[no_unique_address]] Scales scales;

  // The lane's rows of A: row_of(i) is the place in memory of row i of the tile.
  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* a_scale) {
    const u32 lane = platform::thread_id() % wave_size;
    for_each<a_rows, offsets>([&](int i, int u) KILN_LAMBDA {
      u32 row = static_cast<u32>(i); // dot: all lanes have the same
      if constexpr (config.is_matrix()) row = i * config.edge() + (whole_lines ? u * 8 + lane % 8 : lane % config.edge());
      if constexpr (config.method == GemmMethod::sparse) row = lane % 16 / 2;
      row = row_of(row);
      if constexpr (config.staged) a_offset[i][u] = row * config.staged_row() + lane_bytes();
      else a_offset[i][u] = row * config.a_row_bytes() + (tail ? 0 : lane_bytes() * (a_in_halves ? 1 : ratio));
    });
    if constexpr (normed) {
      weights = static_cast<const char*>(a_scale);
      weight_offset = tail ? 0 : lane_bytes() * ratio;
    }
    scales.start(row_of, a_scale, lane_bytes() * 8 / config.b.bits);
  }
  // To `step` of a tile of the matrices, each a pointer or a struct of gemm/operands/.
  template <class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, const A* a_matrix, Bs... matrices) {
    const u32 k = step * config.step_bytes();
    const u64 first = static_cast<u64>(tile) * config.tile_n * config.row_bytes() + (tail ? 0 : static_cast<u64>(k) * config.k_stride());
    if constexpr (!config.staged) a = reinterpret_cast<const char*>(a_matrix) + (tail ? 0 : k * ratio);
    if constexpr (normed) weight = weights + (tail ? 0 : k * ratio);
    int p = 0;
    ((b[p++] = detail::values_of(matrices) + first), ...);
    if constexpr (tail) lane_k = k + lane_bytes();
    const u32 lane = platform::thread_id() % wave_size;
    const auto row_of = [tile](int i, u32 in_load) KILN_LAMBDA {
      const u32 row = i * config.rows_per_load() + in_load;
      if constexpr (!config.n_tail()) return row;
      const u32 rows = config.n - tile * config.tile_n;
      return row < rows ? row : rows - 1;
    };
    for_each<b_rows, offsets>([&](int i, int u) KILN_LAMBDA {
      const u32 row = row_of(i, whole_lines ? u * 8 + lane % 8 : row_in_load(lane));
      if constexpr (config.b.preshuffled) b_offset[i][u] = row / 16 * 16 * config.row_bytes() + row % 16 * 16;
      else b_offset[i][u] = row * config.row_bytes();
      if constexpr (!tail) b_offset[i][u] += lane_bytes() * config.k_stride();
    });
    scales.move_to(tile, step, [&](int i) KILN_LAMBDA { return row_of(i, row_in_load(lane)); }, matrices...); // of words as they are multiplied
  }
  KILN_MEMBER void advance(int steps) {
    scales.advance(steps);
    if constexpr (config.staged) staged += steps * config.step_bytes();
    if constexpr (tail) {
      lane_k += steps * config.step_bytes();
    } else {
      if constexpr (!config.staged) a += steps * config.step_bytes() * ratio;
      if constexpr (normed) weight += steps * config.step_bytes() * ratio;
#pragma unroll
      for (int p = 0; p < config.products; ++p) b[p] += steps * config.step_bytes() * config.k_stride();
    }
  }

  // Streamed: one workgroup reads each weight once, so that a cache gains nothing by keeping it.
  KILN_MEMBER Word16 load_b(int product, int row, u32 step, int u) {
    const Place at = place_of_b(product, row, step, u);
    return platform::load_streamed(at.base, at.offset);
  }
  KILN_MEMBER Word16 load_a(int row, u32 step, int u, int word) {
    const Place at = place_of_a(row, step, u, word);
    return platform::load_word(at.base, at.offset);
  }
  KILN_MEMBER Word16 take_a(int row, u32 step, int u) const { return StagedRows<config>::take(a_offset[row][0] + staged + bytes_to(step, u)); }
  KILN_MEMBER Word16 load_weight(u32 step, int u, int word) {
    platform::pin_vgpr(weight_offset);
    if constexpr (tail) return platform::load_word(weight + word * 16, clamped_k(step, u) * ratio);
    else return platform::load_word(weight + bytes_to(step, u) * ratio + word * 16, weight_offset);
  }
  struct Place {
    const char* base; // uniform
    u32 offset;
  };
  KILN_MEMBER Place place_of_b(int product, int row, u32 step, int u) {
    u32& offset = b_offset[row][whole_lines ? u : 0];
    platform::pin_vgpr(offset);
    if constexpr (tail) return {b[product], offset + clamped_k(step, u) * config.k_stride()};
    else return {b[product] + bytes_to(step, u) * config.k_stride(), offset};
  }
  KILN_MEMBER Place place_of_a(int row, u32 step, int u, int word) {
    u32& offset = a_offset[row][whole_lines ? u : 0];
    platform::pin_vgpr(offset);
    if constexpr (tail && a_in_halves) {
      const u32 at = place_in_a(step, u, word), last = config.a_row_bytes() - 16;
      return {a, offset + (at < last ? at : last)};
    } else if constexpr (tail) {
      return {a + word * 16, offset + clamped_k(step, u) * ratio};
    } else {
      return {a + bytes_to(step, u) * ratio + word * a_word_bytes, offset};
    }
  }
  // Whether the lane's part of load `u` of a step lies beyond the end of the rows: it read the end of the row instead.
  KILN_MEMBER bool beyond(u32 step, int u) const { return lane_k + bytes_to(step, u) >= static_cast<u32>(config.row_bytes()); }
  KILN_MEMBER bool a_beyond(u32 step, int u, int word) const {
    if constexpr (a_in_halves) return place_in_a(step, u, word) >= static_cast<u32>(config.a_row_bytes());
    else return beyond(step, u);
  }

private:
  // With a tail of k and a_in_halves: bytes from the start of a row of A.
  KILN_MEMBER u32 place_in_a(u32 step, int u, int word) const {
    return (lane_k + bytes_to(step, u)) * ratio - lane_bytes() + word * a_word_bytes;
  }
  KILN_DEVICE u32 row_in_load(u32 lane) { return config.row_side_by_side() ? lane / lanes : lane % config.rows_per_load(); }
  KILN_DEVICE u32 bytes_to(u32 step, int u) { return step * config.step_bytes() + (whole_lines ? 0 : u * lanes * 16); }
  KILN_DEVICE u32 lane_bytes() {
    const u32 lane = platform::thread_id() % wave_size;
    if constexpr (whole_lines) return lane / 16 * 32 + lane / 8 % 2 * 16;
    return (config.row_side_by_side() ? lane % lanes : lane / config.rows_per_load()) * 16;
  }
  KILN_MEMBER u32 clamped_k(u32 step, int u) const {
    const u32 k = lane_k + bytes_to(step, u), last = config.row_bytes() - 16;
    return k < last ? k : last;
  }
};

// The weights that go with a lane's words of a row of A.
template <int words> struct ColumnWeights {
  Word16 of[words];
};
struct NoWeights {};

// What one lane holds of a step.
template <GemmConfig config, class A, class B> struct GemmSlot {
  using Operands = GemmOperands<config, A, B>;
  Word16 b[config.products][Operands::b_rows][config.loads];
  Word16 a[Operands::a_rows][config.loads * Operands::ratio];
  [[no_unique_address]] Either<Operands::normed, ColumnWeights<config.loads * Operands::ratio>, NoWeights> weights;
  [[no_unique_address]] GemmScales<config> scales;

  // `step` counts from where the addresses are. Parts of a line follow each other, so that L1 still has it.
  KILN_MEMBER void load(Operands& from, u32 step) {
    for_each<config.products, Operands::b_rows, config.loads>([&](int p, int i, int u) KILN_LAMBDA { b[p][i][u] = from.load_b(p, i, step, u); });
    constexpr int words = config.loads * Operands::ratio;
    if constexpr (!config.staged)
      for_each<Operands::a_rows, words>([&](int i, int w) KILN_LAMBDA { a[i][w] = from.load_a(i, step, w / Operands::ratio, w % Operands::ratio); });
    if constexpr (Operands::normed)
      for_each<words>([&](int w) KILN_LAMBDA { weights.of[w] = from.load_weight(step, w / Operands::ratio, w % Operands::ratio); });
    scales.load(from.scales, step);
  }
  // Words of whole lines become words of the lane's row.
  KILN_MEMBER void arrange_b() {
    if constexpr (Operands::whole_lines) for_each<config.products, Operands::b_rows>([&](int p, int i) KILN_LAMBDA { exchange(b[p][i]); });
  }
  KILN_MEMBER void arrange_a(int row) {
    if constexpr (Operands::whole_lines) exchange(a[row]);
  }
  // Until the next load. Else LLVM keeps what lanes exchanged beside what was loaded, for a segment that may follow.
  KILN_MEMBER void forget() {
    for_each<config.products, Operands::b_rows, config.loads>([&](int p, int i, int u) KILN_LAMBDA { platform::forget(b[p][i][u]); });
    for_each<Operands::a_rows, config.loads * Operands::ratio>([&](int i, int w) KILN_LAMBDA { platform::forget(a[i][w]); });
  }
  // The rows of A of a step, from LDS.
  KILN_MEMBER void take_a(const Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u)
#pragma unroll
      for (int i = 0; i < Operands::a_rows; ++i) a[i][u] = from.take_a(i, step, u);
  }
  // Word `w` of what is multiplied for load `u`: of the lane's row of B, and of its row of A, in the same order of k.
  KILN_MEMBER Word16 b_word(int product, int row, int u, int w) const {
    return scales.template b_word<A, B>(b[product][row][u], product, row, u, w);
  }
  KILN_MEMBER Word16 a_word(int row, int u, int w) const {
    return scales.template a_word<A>(a[row][u * Operands::ratio + w]);
  }
  // Zeroes what lies beyond the end of the rows, in A and in B: the bytes that were read instead may be NaN.
  KILN_MEMBER void cut(const Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      const bool beyond = from.beyond(step, u);
      scales.cut(beyond, u);
      const auto zero = [](Word16& word, bool beyond) KILN_LAMBDA {
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = beyond ? 0u : word[i];
        if constexpr (has_scaled_mfma && (config.a.mx() || is_fp8<B>)) platform::pin_vgpr(word);
      };
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::b_rows; ++i) zero(b[p][i][u], beyond);
      if constexpr (!config.staged)
#pragma unroll
        for (int i = 0; i < Operands::a_rows; ++i)
#pragma unroll
          for (int w = 0; w < Operands::ratio; ++w) zero(a[i][u * Operands::ratio + w], from.a_beyond(step, u, w));
      if constexpr (Operands::normed)
#pragma unroll
        for (int w = 0; w < Operands::ratio; ++w) zero(weights.of[u * Operands::ratio + w], from.a_beyond(step, u, w));
    }
  }

  static KILN_MEMBER void exchange(Word16 (&of)[config.loads]) {
    for_each<4>([&](int i) KILN_LAMBDA {
      u32 first = of[0][i], second = of[1][i];
      platform::exchange_eights(first, second);
      of[0][i] = first, of[1][i] = second;
    });
  }
};

} // namespace kiln
