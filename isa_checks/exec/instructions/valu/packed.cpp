// Packed 16-bit integer instructions and dot products.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

template <class T, auto F> Pair16 each(Pair16 a, Pair16 b) {
  return {static_cast<u16>(F(static_cast<T>(a.lo), static_cast<T>(b.lo))), static_cast<u16>(F(static_cast<T>(a.hi), static_cast<T>(b.hi)))};
}
constexpr auto add = [](i32 a, i32 b) { return a + b; };
constexpr auto sub = [](i32 a, i32 b) { return a - b; };
constexpr auto low = [](i32 a, i32 b) { return std::min(a, b); };
constexpr auto high = [](i32 a, i32 b) { return std::max(a, b); };
constexpr auto mul = [](i32 a, i32 b) { return static_cast<i32>(static_cast<u32>(a) * static_cast<u32>(b)); };
template <class T, auto F> constexpr auto limited = [](T a, T b) { return saturate<T>(F(a, b)); };
Pair16 multiply_add(Pair16 a, Pair16 b, Pair16 c) {
  return {static_cast<u16>(u32{a.lo} * b.lo + c.lo), static_cast<u16>(u32{a.hi} * b.hi + c.hi)};
}

// Sums of products of 4 or 8 signed or unsigned fields.
template <int width, bool is_signed> i64 dot(u32 a, u32 b) {
  i64 sum = 0;
  for (int at = 0; at < 32; at += width) {
    const auto field = [&](u32 x) -> i64 {
      const u32 top = x << (32 - width - at);
      return is_signed ? i64{static_cast<i32>(top) >> (32 - width)} : i64{top >> (32 - width)};
    };
    sum += field(a) * field(b);
  }
  return sum;
}
template <int width, bool is_signed> u32 dot_add(u32 a, u32 b, u32 c) { return static_cast<u32>(dot<width, is_signed>(a, b)) + c; }
template <int width> i32 dot_clamp_signed(u32 a, u32 b, i32 c) { return saturate<i32>(dot<width, true>(a, b) + c); }
template <int width> u32 dot_clamp_unsigned(u32 a, u32 b, u32 c) { return saturate<u32>(dot<width, false>(a, b) + c); }

u32 word(Pair16 p) { return p.lo | static_cast<u32>(p.hi) << 16; }

// v_dot2 with f32 accumulation: both products exact, then two fused additions, the high pair first.
float dot2(HalfPair a, HalfPair b, float c) {
  return std::fma(to_float(a.lo), to_float(b.lo), std::fma(to_float(a.hi), to_float(b.hi), c));
}
float dot2_bf16(Pair16 a, Pair16 b, float c) {
  return std::fma(to_float(BFloat{a.lo}), to_float(BFloat{b.lo}), std::fma(to_float(BFloat{a.hi}), to_float(BFloat{b.hi}), c));
}

constexpr Semantics table[] = {
    lanes<each<u16, add>>("v_pk_add_u16"),
    lanes<each<u16, add>>("v_pk_add_i16"),
    lanes<each<u16, sub>>("v_pk_sub_u16"),
    lanes<each<u16, sub>>("v_pk_sub_i16"),
    lanes<each<u16, limited<u16, add>>>("v_pk_add_u16 clamp"),
    lanes<each<i16, limited<i16, add>>>("v_pk_add_i16 clamp"),
    lanes<each<u16, limited<u16, sub>>>("v_pk_sub_u16 clamp"),
    lanes<each<i16, limited<i16, sub>>>("v_pk_sub_i16 clamp"),
    lanes<each<u16, mul>>("v_pk_mul_lo_u16"),
    lanes<multiply_add>("v_pk_mad_u16"),
    lanes<multiply_add>("v_pk_mad_i16"),
    lanes<each<u16, low>>("v_pk_min_u16"),
    lanes<each<i16, low>>("v_pk_min_i16"),
    lanes<each<u16, high>>("v_pk_max_u16"),
    lanes<each<i16, high>>("v_pk_max_i16"),
    lanes<each<u16, [](u16 n, u16 x) { return x << (n & 15U); }>>("v_pk_lshlrev_b16"),
    lanes<each<u16, [](u16 n, u16 x) { return (x >> (n & 15U)); }>>("v_pk_lshrrev_b16"),
    lanes<each<i16, [](i16 n, i16 x) { return (x >> (n & 15)); }>>("v_pk_ashrrev_i16"),
    lanes<dot2>("v_dot2_f32_f16"),
    lanes<dot2_bf16>("v_dot2_f32_bf16"),
    accumulating<dot2>("v_dot2c_f32_f16"),
    accumulating<dot2_bf16>("v_dot2c_f32_bf16"),
    lanes<[](Pair16 a, Pair16 b, u32 c) { return dot_add<16, true>(word(a), word(b), c); }>("v_dot2_i32_i16"),
    lanes<[](Pair16 a, Pair16 b, u32 c) { return dot_add<16, false>(word(a), word(b), c); }>("v_dot2_u32_u16"),
    lanes<[](Pair16 a, Pair16 b, i32 c) { return dot_clamp_signed<16>(word(a), word(b), c); }>("v_dot2_i32_i16 clamp"),
    lanes<[](Pair16 a, Pair16 b, u32 c) { return dot_clamp_unsigned<16>(word(a), word(b), c); }>("v_dot2_u32_u16 clamp"),
    accumulating<[](u32 a, u32 b, u32 c) { return dot_add<16, true>(a, b, c); }>("v_dot2c_i32_i16"),
    lanes<dot_add<8, true>>("v_dot4_i32_i8"),
    lanes<dot_add<8, false>>("v_dot4_u32_u8"),
    lanes<dot_clamp_signed<8>>("v_dot4_i32_i8 clamp"),
    lanes<dot_clamp_unsigned<8>>("v_dot4_u32_u8 clamp"),
    accumulating<dot_add<8, true>>("v_dot4c_i32_i8"),
    lanes<dot_add<4, true>>("v_dot8_i32_i4"),
    lanes<dot_add<4, false>>("v_dot8_u32_u4"),
    lanes<dot_clamp_signed<4>>("v_dot8_i32_i4 clamp"),
    lanes<dot_clamp_unsigned<4>>("v_dot8_u32_u4 clamp"),
    accumulating<dot_add<4, true>>("v_dot8c_i32_i4"),
};

} // namespace

SemanticsTable packed_table() { return table; }

} // namespace kiln::exec
