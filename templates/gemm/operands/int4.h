// B of 4-bit integers: two a byte, with a scale and a zero point for each group, (q - zero) * scale.
#pragma once
#include "gemm/operands/groups.h"

namespace kiln {

// scale[row][group], zero[row][group]; or zero[group][row / 2], two rows a byte.
template <class A> struct PackedWeights {
  const u8* values;
  const A* scale;
  const u8* zero;
};

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
    const u32 even_bits = platform::pin_constant(0x000f000fu), odd_bits = platform::pin_constant(0x00f000f0u);
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

template <GemmConfig config> struct Int4Operands : WordScaleOperands<config, u16> {
  using Base = WordScaleOperands<config, u16>;
  static constexpr u32 zero_distance = config.b.zero_bytes ? config.b.zero_bytes : 1; // from a group's zero point to the next one's
  const char* zero[config.products];
  u32 zero_row[Base::rows];

  template <class RowOf, class... Bs> KILN_MEMBER void move_to(u32 tile, u32 step, RowOf row_of, Bs... matrices) {
    Base::move_to(tile, step, row_of, matrices...);
    const u64 row = static_cast<u64>(tile) * config.tile_n, first = config.b.zero_bytes ? row / 2 : row * config.groups();
    int p = 0;
    ((zero[p++] = detail::zero_of(matrices) + first), ...);
#pragma unroll
    for (int i = 0; i < Base::rows; ++i)
      zero_row[i] = config.b.zero_bytes ? row_of(i) / 2 + this->fixed_part() * zero_distance : row_of(i) * config.groups() + this->fixed_part();
  }
};

template <GemmConfig config> struct Int4Words : WordScales<config, u16> {
  using Operands = Int4Operands<config>;
  u8 zero[config.products][Operands::rows][config.loads];

  KILN_MEMBER void load(Operands& from, u32 step) {
    if constexpr (config.wide_scales()) return; // turn_scales.h sets them when they are used
    this->each_load([&](int p, int i, int u) KILN_LAMBDA {
      const GroupIndex index = from.position.index(step, u);
      this->scale[p][i][u] = load_of_group<u16>(from.scale[p], from.scale_row[i], index);
      zero[p][i][u] = load_of_group<u8, Operands::zero_distance>(from.zero[p], from.zero_row[i], index);
    });
  }
  template <class A, class B> KILN_MEMBER Word16 b_word(const Word16& loaded, int p, int i, int u, int w) const {
    return unpack4<A, config.unpacks_in_order()>(loaded[w], this->scale[p][i][u], zero_point(p, i, u));
  }
  template <class A> KILN_DEVICE Word16 a_word(const Word16& loaded) {
    if constexpr (config.unpacks_in_order()) return loaded;
    else return in_order_of_unpacked<A>(loaded);
  }

private:
  // The lane's one of two packed in a byte: tiles begin at even rows, and a lane's rows are all even or all odd, but for those that stand
  // in for rows beyond the last one.
  KILN_MEMBER u8 zero_point(int p, int i, int u) const {
    if constexpr (config.b.zero_bytes == 0) return zero[p][i][u];
    const u32 lane = platform::thread_id() % wave_size, row = config.row_side_by_side() ? lane / config.lanes_per_row() : lane;
    return static_cast<u8>(zero[p][i][u] >> (row % 2 * 4) & 15);
  }
};

} // namespace kiln
