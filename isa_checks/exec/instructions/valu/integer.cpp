// Integer and bit vector instructions of 16, 32 and 64 bits.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

using Carry = WithCarry<u32>;

i32 signed24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
u32 low24(u32 x) { return x & 0xffffffU; }
u32 shift_left(u32 x, u32 n) { return x << (n & 31U); }
u32 shift_right(u32 x, u32 n) { return (x >> (n & 31U)); }
Carry add(u32 a, u32 b, bool c) {
  const u64 sum = static_cast<u64>(a) + b + (c ? 1U : 0U);
  return {static_cast<u32>(sum), sum >> 32 != 0};
}
Carry sub(u32 a, u32 b, bool c) {
  const u64 difference = static_cast<u64>(a) - b - (c ? 1U : 0U);
  return {static_cast<u32>(difference), difference >> 32 != 0};
}
u32 bit_field(u32 x, u32 offset, u32 width) {
  offset &= 31U;
  width &= 31U;
  return x >> offset & ((1U << width) - 1);
}
i32 bit_field_signed(i32 x, u32 offset, u32 width) {
  offset &= 31U;
  width &= 31U;
  if (width == 0) return 0;
  return static_cast<i32>(static_cast<u32>(x >> offset) << (32 - width)) >> (32 - width); // the field may reach beyond the sign
}
u32 reverse(u32 x) {
  x = (x >> 1 & 0x55555555U) | (x & 0x55555555U) << 1;
  x = (x >> 2 & 0x33333333U) | (x & 0x33333333U) << 2;
  x = (x >> 4 & 0x0f0f0f0fU) | (x & 0x0f0f0f0fU) << 4;
  x = (x >> 8 & 0x00ff00ffU) | (x & 0x00ff00ffU) << 8;
  return x >> 16 | x << 16;
}
u32 first_high(u32 x) { return x == 0 ? ~0U : static_cast<u32>(std::countl_zero(x)); }
u32 first_low(u32 x) { return x == 0 ? ~0U : static_cast<u32>(std::countr_zero(x)); }
u32 first_sign_change(u32 x) {
  const u32 y = static_cast<i32>(x) < 0 ? ~x : x;
  return y == 0 ? ~0U : static_cast<u32>(std::countl_zero(y));
}
// Bytes of {a, b}, b being the low word, chosen by the bytes of `select`; 8 to 11 replicate a sign, 12 is 0, above 0xff.
u32 permute_bytes(u32 a, u32 b, u32 select) {
  const u64 both = static_cast<u64>(a) << 32 | b;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 s = select >> (8 * i) & 0xffU;
    u32 byte = 0xff;
    if (s < 8) byte = static_cast<u32>(both >> (8 * s)) & 0xffU;
    else if (s < 12) byte = (both >> (16 * (s - 8) + 15) & 1U) != 0 ? 0xffU : 0U;
    else if (s == 12) byte = 0;
    result |= byte << (8 * i);
  }
  return result;
}
u32 high_product(u32 a, u32 b) { return static_cast<u32>(static_cast<u64>(a) * b >> 32); }
i32 high_product_signed(i32 a, i32 b) { return static_cast<i32>(static_cast<i64>(a) * b >> 32); }
WithCarry<u64> mad64(u32 a, u32 b, u64 c) {
  const u64 product = static_cast<u64>(a) * b, sum = product + c;
  return {sum, sum < product};
}
WithCarry<i64> mad64_signed(i32 a, i32 b, i64 c) {
  const u64 product = static_cast<u64>(static_cast<i64>(a) * b), sum = product + static_cast<u64>(c);
  const i64 result = static_cast<i64>(sum);
  return {result, ((static_cast<i64>(product) ^ result) & (c ^ result)) < 0};
}

// v_bitop3: any function of three bits. The truth table, by the index a:b:c, is spread over the modifier fields.
void any_bit_function(Wave& wave, const Inst& inst) {
  Buffer buffer[3], result;
  const u32* const a = fetch(wave, inst, 0, buffer[0]);
  const u32* const b = fetch(wave, inst, 1, buffer[1]);
  const u32* const c = fetch(wave, inst, 2, buffer[2]);
  const Fields& f = inst.fields;
  const u32 truth = f.neg | static_cast<u32>(f.abs) << 3 | static_cast<u32>(f.omod) << 6;
  for (int i = 0; i < lane_count; ++i) {
    u32 r = 0;
    for (u32 k = 0; k < 8; ++k)
      if ((truth >> k & 1U) != 0) r |= ((k & 4U) != 0 ? a[i] : ~a[i]) & ((k & 2U) != 0 ? b[i] : ~b[i]) & ((k & 1U) != 0 ? c[i] : ~c[i]);
    result.word[0][i] = inst.dst.type == Type::u16 ? r & 0xffffU : r;
  }
  commit(wave, inst, result);
}
constexpr Semantics bit_function(std::string_view name, Type type) {
  Signature s;
  s.result = type;
  s.source = {type, type, type};
  s.source_count = 3;
  s.own_modifiers = true;
  s.keeps_half = type == Type::u16;
  return {name, &any_bit_function, s};
}

constexpr Semantics table[] = {
    bit_function("v_bitop3_b32", Type::u32),
    bit_function("v_bitop3_b16", Type::u16),
    lanes<[](u32 a) { return a; }>("v_mov_b32"),
    lanes<[](u64 a) { return a; }>("v_mov_b64"),
    lanes<[](WordPair a, WordPair b) { return WordPair{a.lo, b.lo}; }>("v_pk_mov_b32"), // op_sel chooses both words
    lanes<[](float a, float b, bool c) { return c ? b : a; }>("v_cndmask_b32"),
    lanes<[](u32 a, u32 b) { return a & b; }>("v_and_b32"),
    lanes<[](u32 a, u32 b) { return a | b; }>("v_or_b32"),
    lanes<[](u32 a, u32 b) { return a ^ b; }>("v_xor_b32"),
    lanes<[](u32 a, u32 b) { return ~(a ^ b); }>("v_xnor_b32"),
    lanes<[](u32 a) { return ~a; }>("v_not_b32"),
    lanes<reverse>("v_bfrev_b32"),
    lanes<first_high>("v_ffbh_u32"),
    lanes<first_low>("v_ffbl_b32"),
    lanes<first_sign_change>("v_ffbh_i32"),
    lanes<[](u32 n, u32 x) { return shift_left(x, n); }>("v_lshlrev_b32"),
    lanes<[](u32 n, u32 x) { return shift_right(x, n); }>("v_lshrrev_b32"),
    lanes<[](u32 n, i32 x) { return (x >> (n & 31U)); }>("v_ashrrev_i32"),
    lanes<[](u32 n, u64 x) { return x << (n & 63U); }>("v_lshlrev_b64"),
    lanes<[](u32 n, u64 x) { return (x >> (n & 63U)); }>("v_lshrrev_b64"),
    lanes<[](u32 n, i64 x) { return (x >> (n & 63U)); }>("v_ashrrev_i64"),
    lanes<[](u32 a, u32 b) { return a + b; }>("v_add_u32"),
    lanes<[](u32 a, u32 b) { return a - b; }>("v_sub_u32"),
    lanes<[](u32 a, u32 b) { return b - a; }>("v_subrev_u32"),
    lanes<[](u32 a, u32 b) { return a + b; }>("v_add_i32"),
    lanes<[](u32 a, u32 b) { return a - b; }>("v_sub_i32"),
    lanes<[](u32 a, u32 b) { return saturate<u32>(static_cast<i64>(a) + b); }>("v_add_u32 clamp"),
    lanes<[](u32 a, u32 b) { return saturate<u32>(static_cast<i64>(a) - b); }>("v_sub_u32 clamp"),
    lanes<[](u32 a, u32 b) { return saturate<u32>(static_cast<i64>(b) - a); }>("v_subrev_u32 clamp"),
    lanes<[](i32 a, i32 b) { return saturate<i32>(static_cast<i64>(a) + b); }>("v_add_i32 clamp"),
    lanes<[](i32 a, i32 b) { return saturate<i32>(static_cast<i64>(a) - b); }>("v_sub_i32 clamp"),
    lanes<[](u32 a, u32 b) { return add(a, b, false); }>("v_add_co_u32"),
    lanes<[](u32 a, u32 b) { return sub(a, b, false); }>("v_sub_co_u32"),
    lanes<[](u32 a, u32 b) { return sub(b, a, false); }>("v_subrev_co_u32"),
    lanes<add>("v_addc_co_u32"),
    lanes<sub>("v_subb_co_u32"),
    lanes<[](u32 a, u32 b, bool c) { return sub(b, a, c); }>("v_subbrev_co_u32"),
    lanes<[](u32 a, u32 b) { return low24(a) * low24(b); }>("v_mul_u32_u24"),
    lanes<[](u32 a, u32 b) { return high_product(low24(a), low24(b)); }>("v_mul_hi_u32_u24"),
    lanes<[](u32 a, u32 b) { return static_cast<u32>(signed24(a)) * static_cast<u32>(signed24(b)); }>("v_mul_i32_i24"),
    lanes<[](u32 a, u32 b) { return high_product_signed(signed24(a), signed24(b)); }>("v_mul_hi_i32_i24"),
    lanes<[](u32 a, u32 b, u32 c) { return low24(a) * low24(b) + c; }>("v_mad_u32_u24"),
    lanes<[](u32 a, u32 b, u32 c) { return static_cast<u32>(signed24(a)) * static_cast<u32>(signed24(b)) + c; }>("v_mad_i32_i24"),
    lanes<[](u32 a, u32 b) { return a * b; }>("v_mul_lo_u32"),
    lanes<high_product>("v_mul_hi_u32"),
    lanes<high_product_signed>("v_mul_hi_i32"),
    lanes<mad64>("v_mad_u64_u32"),
    lanes<mad64_signed>("v_mad_i64_i32"),
    lanes<[](u32 a, u32 b) { return std::min(a, b); }>("v_min_u32"),
    lanes<[](u32 a, u32 b) { return std::max(a, b); }>("v_max_u32"),
    lanes<[](i32 a, i32 b) { return std::min(a, b); }>("v_min_i32"),
    lanes<[](i32 a, i32 b) { return std::max(a, b); }>("v_max_i32"),
    lanes<[](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); }>("v_min3_u32"),
    lanes<[](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); }>("v_max3_u32"),
    lanes<[](i32 a, i32 b, i32 c) { return std::min(std::min(a, b), c); }>("v_min3_i32"),
    lanes<[](i32 a, i32 b, i32 c) { return std::max(std::max(a, b), c); }>("v_max3_i32"),
    lanes<median_integer<u32>>("v_med3_u32"),
    lanes<median_integer<i32>>("v_med3_i32"),
    lanes<bit_field>("v_bfe_u32"),
    lanes<bit_field_signed>("v_bfe_i32"),
    lanes<[](u32 m, u32 a, u32 b) { return (m & a) | (~m & b); }>("v_bfi_b32"),
    lanes<[](u32 width, u32 offset) { return ((1U << (width & 31U)) - 1) << (offset & 31U); }>("v_bfm_b32"),
    lanes<[](u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }>("v_bcnt_u32_b32"),
    lanes<[](u32 a, u32 b, u32 n) { return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (n & 31U)); }>("v_alignbit_b32"),
    lanes<[](u32 a, u32 b, u32 n) { return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (8 * (n & 3U))); }>("v_alignbyte_b32"),
    lanes<permute_bytes>("v_perm_b32"),
    lanes<[](u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; }>("v_sad_u32"),
    lanes<[](u32 a, u32 b, u32 c) { return (a & b) | c; }>("v_and_or_b32"),
    lanes<[](u32 a, u32 b, u32 c) { return a | b | c; }>("v_or3_b32"),
    lanes<[](u32 a, u32 b, u32 c) { return a + b + c; }>("v_add3_u32"),
    lanes<[](u32 a, u32 b, u32 c) { return (a ^ b) + c; }>("v_xad_u32"),
    lanes<[](u32 a, u32 n, u32 c) { return shift_left(a, n) + c; }>("v_lshl_add_u32"),
    lanes<[](u32 a, u32 b, u32 n) { return shift_left(a + b, n); }>("v_add_lshl_u32"),
    lanes<[](u32 a, u32 n, u32 c) { return shift_left(a, n) | c; }>("v_lshl_or_b32"),
    lanes<[](u64 a, u32 n, u64 c) { return (a << std::min(n & 7U, 4U)) + c; }>("v_lshl_add_u64"),
    lanes<[](i32 a, i32 b, u32 n) {
      const auto narrow = [&](i32 x) { return static_cast<u16>(saturate<std::int8_t>(x >> (n & 31U)) & 0xff); };
      return static_cast<u16>(narrow(a) | narrow(b) << 8);
    }>("v_ashr_pk_i8_i32"),
    lanes<[](i32 a, i32 b, u32 n) {
      const auto narrow = [&](i32 x) { return static_cast<u16>(saturate<std::uint8_t>(x >> (n & 31U))); };
      return static_cast<u16>(narrow(a) | narrow(b) << 8);
    }>("v_ashr_pk_u8_i32"),
    lanes<[](u16 a, u16 b) { return static_cast<u16>(a + b); }>("v_add_u16"),
    lanes<[](u16 a, u16 b) { return static_cast<u16>(a - b); }>("v_sub_u16"),
    lanes<[](u16 a, u16 b) { return static_cast<u16>(b - a); }>("v_subrev_u16"),
    lanes<[](u16 a, u16 b) { return saturate<u16>(a + b); }>("v_add_u16 clamp"),
    lanes<[](u16 a, u16 b) { return saturate<u16>(a - b); }>("v_sub_u16 clamp"),
    keeping_half<[](i16 a, i16 b) { return static_cast<i16>(a + b); }>("v_add_i16"),
    keeping_half<[](i16 a, i16 b) { return static_cast<i16>(a - b); }>("v_sub_i16"),
    keeping_half<[](i16 a, i16 b) { return saturate<i16>(a + b); }>("v_add_i16 clamp"),
    keeping_half<[](i16 a, i16 b) { return saturate<i16>(a - b); }>("v_sub_i16 clamp"),
    lanes<[](u16 a, u16 b) { return static_cast<u16>(static_cast<u32>(a) * b); }>("v_mul_lo_u16"),
    keeping_half<[](u16 a, u16 b, u16 c) { return static_cast<u16>(static_cast<u32>(a) * b + c); }>("v_mad_u16"),
    keeping_half<[](u16 a, u16 b, u16 c) { return static_cast<u16>(static_cast<u32>(a) * b + c); }>("v_mad_i16"),
    lanes<[](u16 a, u16 b, u32 c) { return static_cast<u32>(a) * b + c; }>("v_mad_u32_u16"),
    lanes<[](i16 a, i16 b, u32 c) { return static_cast<u32>(static_cast<i32>(a) * b) + c; }>("v_mad_i32_i16"),
    lanes<[](u16 n, u16 x) { return static_cast<u16>(x << (n & 15U)); }>("v_lshlrev_b16"),
    lanes<[](u16 n, u16 x) { return static_cast<u16>(x >> (n & 15U)); }>("v_lshrrev_b16"),
    lanes<[](u16 n, i16 x) { return static_cast<i16>(x >> (n & 15U)); }>("v_ashrrev_i16"),
    lanes<[](u16 a, u16 b) { return std::min(a, b); }>("v_min_u16"),
    lanes<[](u16 a, u16 b) { return std::max(a, b); }>("v_max_u16"),
    lanes<[](i16 a, i16 b) { return std::min(a, b); }>("v_min_i16"),
    lanes<[](i16 a, i16 b) { return std::max(a, b); }>("v_max_i16"),
    keeping_half<[](u16 a, u16 b, u16 c) { return std::min(std::min(a, b), c); }>("v_min3_u16"),
    keeping_half<[](u16 a, u16 b, u16 c) { return std::max(std::max(a, b), c); }>("v_max3_u16"),
    keeping_half<[](i16 a, i16 b, i16 c) { return std::min(std::min(a, b), c); }>("v_min3_i16"),
    keeping_half<[](i16 a, i16 b, i16 c) { return std::max(std::max(a, b), c); }>("v_max3_i16"),
    keeping_half<median_integer<u16>>("v_med3_u16"),
    keeping_half<median_integer<i16>>("v_med3_i16"),
};

} // namespace

SemanticsTable integer_table() { return table; }

} // namespace kiln::exec
