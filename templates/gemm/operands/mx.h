// MX formats: e2m1 or fp8 with a power of two for every 32 elements of k, of B or of both operands.
#pragma once
#include "gemm/operands/groups.h"
#include "gemm/operands/mx_numbers.h"

namespace kiln {

// scale[row][group]
template <class B> struct MxWeights {
  const B* values;
  const e8m0* scale;
};

// ---- of B: weights become A's type
template <GemmConfig config> struct MxWords : WordScales<config, u8> {
  template <class A, class B> KILN_MEMBER Word16 b_word(const Word16& loaded, int p, int i, int u, int w) const {
    return unpack_mx<A>(loaded[w], this->scale[p][i][u]);
  }
  template <class A> KILN_DEVICE Word16 a_word(const Word16& loaded) { return loaded; }
};

// ---- of both
// A lane loads the scales of its rows of both. A scaled matrix instruction takes those of block lane / 16 of 128 elements; where numbers are
// converted, each 16 bytes have theirs. With whole lines a lane has two groups of a row behind each other, and loads their scales together.
template <GemmConfig config> struct MxScaleOperands {
  static constexpr bool in_instruction = has_scaled_mfma;
  static constexpr int rows = config.tile_n / config.rows_per_load(), a_rows = config.row_tiles();
  static constexpr int loads_each = in_instruction && config.b.bits == 8 ? 2 : 1, words = config.loads / loads_each; // loads with one scale
  static constexpr bool pairs = config.whole_lines();
  ScalesOfA<config, u8> a;
  const char* scale[config.products];
  GroupPosition<config> position;
  u32 scale_row[rows], a_row[a_rows];

  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* a_scale, u32 lane_k) {
    const u32 lane = platform::thread_id() % wave_size;
    a.start(row_of, a_scale);
    position.lane_k = pairs ? lane / 16 * 2 * config.b.group : in_instruction ? lane / 16 * config.b.group : lane_k;
#pragma unroll
    for (int i = 0; i < a_rows; ++i) a_row[i] = a.place(row_of(i * 16 + lane % 16), fixed_part());
  }
  template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, RowOf row_of, Bs... matrices) {
    int p = 0;
    ((scale[p++] = detail::scale_of(matrices) + static_cast<u64>(tile) * config.tile_n * config.groups()), ...);
#pragma unroll
    for (int i = 0; i < rows; ++i) scale_row[i] = row_of(i) * config.groups() + fixed_part();
    position.at = step;
  }
  KILN_MEMBER void advance(int steps) { position.at += steps; }

private:
  KILN_MEMBER u32 fixed_part() const { return position.lane_fixed ? position.lane_part() : 0; }
};

template <GemmConfig config> struct MxScales : PlainWords {
  using Operands = MxScaleOperands<config>;
  static constexpr int scale_loads = Operands::pairs ? 1 : Operands::words;
  using Loaded = Either<Operands::pairs, u16, u8>;
  Loaded scale[config.products][Operands::rows][scale_loads], a[Operands::a_rows][scale_loads]; // as bits

  KILN_MEMBER u32 scale_of_b(int p, int i, int u) const { return one(scale[p][i], u); }
  KILN_MEMBER u32 scale_of_a(int r, int u) const { return one(a[r], u); }

  KILN_MEMBER void load(Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < scale_loads; ++u) {
      const GroupIndex index = from.position.index(step, u * Operands::loads_each);
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::rows; ++i) scale[p][i][u] = load_of_group<Loaded, 1>(from.scale[p], from.scale_row[i], index);
#pragma unroll
      for (int i = 0; i < Operands::a_rows; ++i) a[i][u] = from.a.template load<Loaded>(from.a_row[i], index);
    }
  }
  KILN_MEMBER void cut(bool, int) {} // beyond the end of k stands the scale of the row's last block: a NaN there is one of the row
  template <class Scales> KILN_MEMBER void take_b(const Scales& from) {
    for_each<config.products, Operands::rows>([&](int p, int i) KILN_LAMBDA { scale[p][i][0] = from.scale[p][i][0]; });
  }

private:
  static KILN_MEMBER u32 one(const Loaded (&of)[scale_loads], int u) {
    if constexpr (Operands::pairs) return static_cast<u32>(of[0]) >> (8 * u); // its lowest byte counts
    else return of[u];
  }
};

} // namespace kiln
