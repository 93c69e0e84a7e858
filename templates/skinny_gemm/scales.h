// Scales of groups of k: what a lane loads of them beside the operands of a step, and weights of 4 bits made numbers by them.
#pragma once
#include "common/matrix.h"
#include "common/memory.h"
#include "skinny_gemm_config.h"

namespace kiln {

// B with what else `run` needs of it. Block scales: scale[row / 128][group]; weights of 4 bits: scale[row][group], and zero[row][group] of integers.
template <class B> struct BlockScaled {
  const B* values;
  const f32* scale;
};
template <class A> struct PackedWeights {
  const u8* values;
  const A* scale;
  const u8* zero;
};
template <class B> struct MxWeights {
  const B* values;
  const e8m0* scale;
};

// Bits of an element of a matrix in memory.
template <class T> inline constexpr int gemm_bits = __is_same(T, u4x2) || is_packed<T> ? 4 : 8 * static_cast<int>(sizeof(T));

namespace detail {

template <class B> KILN_DEVICE const char* values_of(const B* b) { return reinterpret_cast<const char*>(b); }
template <class B> KILN_DEVICE const char* values_of(BlockScaled<B> b) { return reinterpret_cast<const char*>(b.values); }
template <class A> KILN_DEVICE const char* values_of(PackedWeights<A> b) { return reinterpret_cast<const char*>(b.values); }
template <class B> KILN_DEVICE const char* values_of(MxWeights<B> b) { return reinterpret_cast<const char*>(b.values); }
template <class B> KILN_DEVICE const char* scale_of(B b) { return reinterpret_cast<const char*>(b.scale); }
template <class B> KILN_DEVICE const char* zero_of(const B&) { return nullptr; }
template <class A> KILN_DEVICE const char* zero_of(PackedWeights<A> b) { return reinterpret_cast<const char*>(b.zero); }

} // namespace detail

// The group that a load of a step lies in: a uniform part and the lane's.
struct GroupIndex {
  u64 uniform;
  u32 lane;
};

template <SkinnyGemmConfig config> struct GroupPosition {
  static constexpr u32 step_k = config.step_k(), group = config.group;
  static constexpr bool steps_in_group = group % step_k == 0, groups_in_step = !steps_in_group && step_k % group == 0;
  // Whether the lane's part is the same in every step, so that it can be part of the lane's offset.
  static constexpr bool lane_fixed = steps_in_group || (groups_in_step && !config.k_tail());

  u32 at = 0;      // step of the tile, the same in all lanes
  u32 lane_k = 0;  // the lane's first element of k in a load

  // The lane's fixed part, in groups.
  KILN_MEMBER u32 lane_part() const { return groups_in_step ? lane_k / group : 0; }
  // The group of load `u`, `step` steps after the current one.
  KILN_MEMBER GroupIndex index(u32 step, int u) const {
    if constexpr (steps_in_group) return {group == step_k ? static_cast<u64>(at) + step : (at + step) / (group / step_k), 0};
    if constexpr (lane_fixed) return {static_cast<u64>(at) * (step_k / group) + step * (step_k / group) + u * config.load_k() / group, 0};
    const u32 mine = ((at + step) * step_k + u * config.load_k() + lane_k) / group, last = config.groups() - 1;
    return {0, mine < last ? mine : last};
  }
};

// Loads a scale or a zero point, whose row starts at `row` bytes from `base`, and whose groups are `distance` bytes apart. The row is opaque: if all lanes had the same visible
// one, LLVM would make scalar loads. Those return in any order, so that a wait for one is a wait for all.
// A type narrower than a register stays narrow until it is used: a conversion here would wait at the end of a loop.
template <class T, u32 distance = sizeof(T)> KILN_DEVICE T load_of_group(const char* base, u32& row, GroupIndex index) {
  platform::stay_here(row);
  const char* const uniform = base + index.uniform * distance;
  const u32 offset = row + index.lane * distance;
  return *reinterpret_cast<const T*>(uniform + offset);
}

// The same with groups `distance` bytes apart, which only the launch says. All groups of all rows have less than 4 GiB.
template <class T> KILN_DEVICE T load_of_group(const char* base, u32& row, GroupIndex index, u32 distance) {
  platform::stay_here(row);
  return *reinterpret_cast<const T*>(base + static_cast<u32>(index.uniform) * distance + (row + index.lane * distance));
}

// A's scales in memory: row after row, or group after group.
template <SkinnyGemmConfig config, class T> struct ScalesOfA {
  const char* first;
  u32 distance; // bytes from a group to the next one, if group follows group

  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* scales) {
    first = static_cast<const char*>(scales);
    if constexpr (config.a_scales_by_group) distance = row_of.count * static_cast<u32>(sizeof(T));
  }
  // The lane's group of a row, in bytes from the first scale.
  KILN_MEMBER u32 place(u32 row, u32 group) const {
    if constexpr (config.a_scales_by_group) return row * sizeof(T) + group * distance;
    else return (row * config.groups() + group) * sizeof(T);
  }
  KILN_MEMBER T load(u32& place, GroupIndex index) const {
    if constexpr (config.a_scales_by_group) return load_of_group<T>(first, place, index, distance);
    else return load_of_group<T>(first, place, index);
  }
};

// ---- scales of blocks
// A lane loads the scales of the rows of A that its sums belong to, and the tile's scale of B.
template <SkinnyGemmConfig config> struct BlockScaleOperands {
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
  template <class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, Bs... matrices) {
    const u64 row = static_cast<u64>(tile) * config.tile_n / config.group;
    int p = 0;
    ((b[p++] = detail::scale_of(matrices) + row * config.groups() * 4), ...);
    b_row = (position.lane_fixed ? position.lane_part() : 0) * 4;
    position.at = step;
  }
};

template <SkinnyGemmConfig config> struct BlockScales {
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
  // What a sum of the group is multiplied by.
  KILN_MEMBER f32 scale(int row, int product, int u) const {
    return a[row][u] * b[product][u];
  }
};

// ---- weights of 4 bits
template <SkinnyGemmConfig config> struct PackedScaleOperands {
  static constexpr int rows = config.tile_n / config.rows_per_load();
  static constexpr u32 scale_bytes = config.mx ? 1 : 2;
  static constexpr u32 zero_distance = config.zero_bytes ? config.zero_bytes : 1; // from a group's zero point to the next one's
  const char *scale[config.products], *zero[config.products];
  GroupPosition<config> position;
  u32 scale_row[rows], zero_row[rows];

  template <class RowOf> KILN_MEMBER void start(RowOf, const void*, u32 lane_k) { position.lane_k = lane_k; }
  // `row_of(i)` is the lane's row of the tile in its i-th load.
  template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, RowOf row_of, Bs... matrices) {
    const u64 row = static_cast<u64>(tile) * config.tile_n, first = row * config.groups();
    const u64 first_zero = config.zero_bytes ? row / 2 : first; // packed ones lie group after group
    int p = 0;
    ((scale[p] = detail::scale_of(matrices) + first * scale_bytes, zero[p++] = detail::zero_of(matrices) + first_zero), ...);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const u32 part = position.lane_fixed && !config.wide_scales() ? position.lane_part() : 0, in_row = row_of(i) * config.groups() + part;
      zero_row[i] = config.zero_bytes ? row_of(i) / 2 + part * zero_distance : in_row;
      scale_row[i] = in_row * scale_bytes;
    }
    position.at = step;
  }
};

template <SkinnyGemmConfig config> struct PackedScales {
  using Operands = PackedScaleOperands<config>;
  using Scale = Either<config.mx, u8, u16>;
  Scale scale[config.products][Operands::rows][config.loads]; // as bits
  u8 zero[config.products][Operands::rows][config.loads];

  KILN_MEMBER void load(Operands& from, u32 step) {
    if constexpr (config.wide_scales()) return; // skinny_gemm/turn_scales.h sets them when they are used
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      const GroupIndex index = from.position.index(step, u);
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::rows; ++i) {
          scale[p][i][u] = load_of_group<Scale>(from.scale[p], from.scale_row[i], index);
          if constexpr (!config.mx) zero[p][i][u] = load_of_group<u8, Operands::zero_distance>(from.zero[p], from.zero_row[i], index);
        }
    }
  }
  // The lane's one of two packed in a byte: tiles begin at even rows, and a lane's rows are all even or all odd, but for those that stand
  // in for rows beyond the last one.
  KILN_MEMBER u8 zero_point(int p, int i, int u) const {
    if constexpr (config.zero_bytes == 0) return zero[p][i][u];
    const u32 lane = platform::thread_id() % wave_size, row = config.row_side_by_side() ? lane / config.lanes_per_row() : lane;
    return static_cast<u8>(zero[p][i][u] >> (row % 2 * 4) & 15);
  }
  // Beyond the end of k weights are 0, whatever the scale is.
  KILN_MEMBER void cut(bool beyond, int u) {
#pragma unroll
    for (int p = 0; p < config.products; ++p)
#pragma unroll
      for (int i = 0; i < Operands::rows; ++i) scale[p][i][u] = beyond ? Scale(0) : scale[p][i][u];
  }
};

// ---- operands of MX formats
// A lane loads the scales of its rows of both. A scaled matrix instruction takes those of block lane / 16 of 128 elements; where numbers are
// converted, each 16 bytes have theirs.
template <SkinnyGemmConfig config> struct MxScaleOperands {
  static constexpr bool in_instruction = has_scaled_mfma;
  static constexpr int rows = config.tile_n / config.rows_per_load(), a_rows = config.row_tiles();
  static constexpr int loads_each = in_instruction && config.b_bits == 8 ? 2 : 1, words = config.loads / loads_each; // loads with one scale
  ScalesOfA<config, u8> a;
  const char* scale[config.products];
  GroupPosition<config> position;
  u32 scale_row[rows], a_row[a_rows];

  template <class RowOf> KILN_MEMBER void start(RowOf row_of, const void* a_scale, u32 lane_k) {
    const u32 lane = platform::thread_id() % wave_size;
    a.start(row_of, a_scale);
    position.lane_k = in_instruction ? lane / 16 * config.group : lane_k;
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

private:
  KILN_MEMBER u32 fixed_part() const { return position.lane_fixed ? position.lane_part() : 0; }
};

template <SkinnyGemmConfig config> struct MxScales {
  using Operands = MxScaleOperands<config>;
  u8 scale[config.products][Operands::rows][Operands::words], a[Operands::a_rows][Operands::words]; // as bits

  KILN_MEMBER void load(Operands& from, u32 step) {
#pragma unroll
    for (int u = 0; u < Operands::words; ++u) {
      const GroupIndex index = from.position.index(step, u * Operands::loads_each);
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::rows; ++i) scale[p][i][u] = load_of_group<u8>(from.scale[p], from.scale_row[i], index);
#pragma unroll
      for (int i = 0; i < Operands::a_rows; ++i) a[i][u] = from.a.load(from.a_row[i], index);
    }
  }
  KILN_MEMBER void cut(bool, int) {} // beyond the end of k stands the scale of the row's last block: a NaN there is one of the row
};

struct NoScales {
  struct Operands {};
};

template <SkinnyGemmConfig config>
using GemmScales = Either<config.mx_pair(), MxScales<config>,
                          Either<config.packed(), PackedScales<config>, Either<config.block_scaled(), BlockScales<config>, NoScales>>>;

// ---- 4-bit numbers
// The weights of `word` as A's type, two a register: rounded (q - zero) * scale. In f16 they come in the order 0 4, 1 5, 2 6,
// 3 7 unless they are put `in_order`, in bf16 as they lie.
template <class A, bool in_order> KILN_DEVICE Word16 unpack4(u32 word, u16 scale, u8 zero) {
  using Halves = Vec<f16, 2>;
  Word16 result;
  if constexpr (__is_same(A, f16)) {
    // 0x6400 is 1024 in f16, whose unit is 1: with q in the lowest bits it is 1024 + q, and 1024 + 16 q with q 4 bits higher.
    const f16 one = bit_cast<f16>(scale), low = bit_cast<f16>(static_cast<u16>(0x6400 | zero));
    const f16 high = low - f16(960); // 64 + zero, exact as all of these
    // One instruction takes the bits and sets the exponent, if both constants are in registers, of which one may be scalar.
    const u32 even_bits = platform::opaque(0x000f000fu), odd_bits = platform::opaque(0x00f000f0u);
    const u32 exponent = platform::opaque_registers(0x64006400u);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const u32 pairs = i == 0 ? word : word >> 8;
      const auto even = bit_cast<Halves>((pairs & even_bits) | exponent) - Halves(low);
      const auto odd = platform::fma(bit_cast<Halves>((pairs & odd_bits) | exponent), Halves(f16(0.0625f)), -Halves(high));
      result[2 * i] = bit_cast<u32>(even * Halves(one));
      result[2 * i + 1] = bit_cast<u32>(odd * Halves(one));
    }
    if constexpr (in_order) {
      const Word16 mixed = result;
#pragma unroll
      for (int i = 0; i < 4; ++i) // first the low halves of two registers each, then the high ones
        result[i] = platform::permute_bytes(mixed[2 * (i % 2) + 1], mixed[2 * (i % 2)], i < 2 ? platform::lower_halves : platform::upper_halves);
    }
  } else {
    static_assert(__is_same(A, bf16));
    const u32 bytes[2] = {word & 0x0f0f0f0fu, word >> 4 & 0x0f0f0f0fu};
    const Vec<f32, 2> one = pair_of(bit_cast<f32>(static_cast<u32>(scale) << 16)), none = pair_of(static_cast<f32>(zero));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Vec<f32, 2> q = {static_cast<f32>(bytes[0] >> (8 * i) & 0xff), static_cast<f32>(bytes[1] >> (8 * i) & 0xff)};
      const Vec<f32, 2> x = (q - none) * one;
      if constexpr (has_native_bf16_convert) {
        result[i] = bit_cast<u32>(convert<Vec<bf16, 2>>(x));
      } else { // to nearest even. NaN stays: its lower half is 0, as that of the scale it comes from
        const f32 x0 = x[0], x1 = x[1];
        const u32 low = bit_cast<u32>(x0), high = bit_cast<u32>(x1);
        result[i] = platform::permute_bytes(high + 0x7fff + (high >> 16 & 1), low + 0x7fff + (low >> 16 & 1), platform::upper_halves);
      }
    }
  }
  return result;
}
// Eight numbers of A in the order that unpack4 gives weights when not `in_order`.
template <class A> KILN_DEVICE Word16 in_order_of_unpacked(Word16 a) {
  if constexpr (!__is_same(A, f16)) return a;
  return {platform::permute_bytes(a[2], a[0], platform::lower_halves), platform::permute_bytes(a[2], a[0], platform::upper_halves),
          platform::permute_bytes(a[3], a[1], platform::lower_halves), platform::permute_bytes(a[3], a[1], platform::upper_halves)};
}

} // namespace kiln
