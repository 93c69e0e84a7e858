// Vector instructions that compilers rarely emit: byte averages and differences, cube maps, the argument reduction of f64
// trigonometry, and the older 16-bit multiply-adds.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/numbers/float_ops.h"
#include <array>

namespace kiln::exec {
namespace {

// Sum of the four byte differences; `masked` passes over bytes where the second operand is 0.
u32 byte_differences(u32 a, u32 b, bool masked) {
  u32 sum = 0;
  for (int at = 0; at < 32; at += 8) {
    const u32 x = a >> at & 0xffU, y = b >> at & 0xffU;
    if (!masked || y != 0) sum += x > y ? x - y : y - x;
  }
  return sum;
}
u32 average_bytes(u32 a, u32 b, u32 rounding) {
  u32 result = 0;
  for (int at = 0; at < 32; at += 8) result |= ((a >> at & 0xffU) + (b >> at & 0xffU) + (rounding >> at & 1U)) >> 1 << at;
  return result;
}
u32 word_differences(u32 a, u32 b, u32 c) {
  for (int at = 0; at < 32; at += 16) {
    const u32 x = a >> at & 0xffffU, y = b >> at & 0xffffU;
    c += x > y ? x - y : y - x;
  }
  return c;
}
// Four sums, of the bytes from byte 0, 1, 2 and 3 of `a` on against b, added to the 16-bit fields of c.
template <bool masked> u64 four_differences(u64 a, u32 b, u64 c) {
  u64 result = 0;
  for (int k = 0; k < 4; ++k) {
    const u64 sum = byte_differences(static_cast<u32>(a >> (8 * k)), b, masked) + (c >> (16 * k) & 0xffffU);
    result |= (sum & 0xffffU) << (16 * k);
  }
  return result;
}
// The same with 32-bit sums, over four registers.
void four_wide_differences(Wave& wave, const Inst& inst) {
  Buffer buffer[2];
  const u32* const a = fetch(wave, inst, 0, buffer[0]);
  const u32* const b = fetch(wave, inst, 1, buffer[1]);
  const u32* const c = wave.lanes(inst.src[2].reg);
  u32 result[4][lane_count];
  for (int i = 0; i < lane_count; ++i) {
    const u64 bytes = a[i] | static_cast<u64>(a[lane_count + i]) << 32;
    for (int k = 0; k < 4; ++k) result[k][i] = c[k * lane_count + i] + byte_differences(static_cast<u32>(bytes >> (8 * k)), b[i], true);
  }
  for (int k = 0; k < 4; ++k) {
    u32* const to = wave.lanes(static_cast<u16>(inst.dst.reg + k));
    for (int i = 0; i < lane_count; ++i)
      if (active(wave.exec(), i)) to[i] = result[k][i];
  }
}

u16 saturate_pair(u32 x) {
  const auto byte = [](u32 half) { return static_cast<u32>(std::clamp<int>(static_cast<i16>(half), 0, 255)); };
  return static_cast<u16>(byte(x) | byte(x >> 16) << 8);
}

// Cube maps: which of x, y, z is the major axis; the later one wins a tie.
enum class Axis : std::uint8_t { x, y, z };
Axis major_axis(float x, float y, float z) {
  if (std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y)) return Axis::z;
  return std::fabs(y) >= std::fabs(x) ? Axis::y : Axis::x;
}
float cube_face(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
  case Axis::z: return z < 0 ? 5.0F : 4.0F;
  case Axis::y: return y < 0 ? 3.0F : 2.0F;
  default: return x < 0 ? 1.0F : 0.0F;
  }
}
float cube_s(float x, float y, float z) {
  switch (major_axis(x, y, z)) {
  case Axis::z: return z < 0 ? -x : x;
  case Axis::y: return x;
  default: return x < 0 ? z : -z;
  }
}
float cube_t(float x, float y, float z) { return major_axis(x, y, z) == Axis::y ? (y < 0 ? -z : z) : -y; }
float cube_major(float x, float y, float z) {
  const Axis axis = major_axis(x, y, z);
  return 2.0F * (axis == Axis::z ? z : axis == Axis::y ? y : x);
}

// The first 1216 bits after the point of 2 / pi; the instruction knows 1201 of them.
constexpr std::array<u32, 38> two_over_pi = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
                                             0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
                                             0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
                                             0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
                                             0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
constexpr int known_bits = 1201;

// A 53-bit piece of 2 / pi: which one, the second operand and the size of the first say.
double trig_piece(double x, u32 which) {
  const int exponent = static_cast<int>(as_bits(x) >> 52 & 0x7ffU);
  const int first = static_cast<int>(which & 31U) * 53 + std::max(exponent - 1077, 0);
  u64 piece = 0;
  for (int i = first; i < first + 53; ++i) {
    const bool bit = i < known_bits && (two_over_pi[static_cast<std::size_t>(i / 32)] >> (31 - i % 32) & 1U) != 0;
    piece = piece << 1 | (bit ? 1U : 0U);
  }
  return std::ldexp(static_cast<double>(piece), -53 - first + (exponent >= 1968 ? 128 : 0));
}

// v_mad_f16 and v_mac_f16 round the product, then the sum, and have no denormals (LLVM selects them only when those are off).
float flush_half(float x) { return std::fabs(x) < 0.00006103515625F ? std::copysign(0.0F, x) : x; } // 2^-14
Half multiply_add(Half a, Half b, Half c) {
  const float product = flush_half(to_float(to_half(flush_half(to_float(a)) * flush_half(to_float(b)))));
  return to_half(flush_half(to_float(to_half(product + flush_half(to_float(c))))));
}
u16 integer_multiply_add(u16 a, u16 b, u16 c) { return static_cast<u16>(static_cast<u32>(a) * b + c); }

constexpr Semantics table[] = {
    lanes<[](u32 a, u32 b, u32 c) { return byte_differences(a, b, false) + c; }>("v_sad_u8"),
    lanes<[](u32 a, u32 b, u32 c) { return byte_differences(a, b, true) + c; }>("v_msad_u8"),
    lanes<[](u32 a, u32 b, u32 c) { return (byte_differences(a, b, false) << 16) + c; }>("v_sad_hi_u8"),
    lanes<word_differences>("v_sad_u16"),
    lanes<average_bytes>("v_lerp_u8"),
    lanes<four_differences<false>>("v_qsad_pk_u16_u8"),
    lanes<four_differences<true>>("v_mqsad_pk_u16_u8"),
    entry("v_mqsad_u32_u8", four_wide_differences, Type::u32x4, {Type::u64, Type::u32, Type::u32x4}, false),
    lanes<saturate_pair>("v_sat_pk_u8_i16"),
    accumulating<insert_byte>("v_cvt_pkaccum_u8_f32"),
    lanes<cube_face>("v_cubeid_f32"),
    lanes<cube_s>("v_cubesc_f32"),
    lanes<cube_t>("v_cubetc_f32"),
    lanes<cube_major>("v_cubema_f32"),
    lanes<trig_piece>("v_trig_preop_f64"),
    keeping_half<multiply_add>("v_mad_f16"),
    lanes<multiply_add>("v_mad_legacy_f16"),
    lanes<multiply_add>("v_madmk_f16"),
    lanes<multiply_add>("v_madak_f16"),
    accumulating<multiply_add>("v_mac_f16"),
    lanes<integer_multiply_add>("v_mad_legacy_u16"),
    lanes<integer_multiply_add>("v_mad_legacy_i16"),
};

} // namespace

SemanticsTable rare_table() { return table; }

} // namespace kiln::exec
