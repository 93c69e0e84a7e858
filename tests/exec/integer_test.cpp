// Every integer and bit instruction of the vector unit against a formula.
#include "tests/exec/instruction_cases.h"
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace integer_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;

// The low `bits` of x as a signed number, and a number cut to `bits`.
constexpr i64 sext(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }
constexpr u64 low(i64 x, int bits = 32) { return static_cast<u64>(x) & (bits == 64 ? ~u64{0} : (u64{1} << bits) - 1); }
constexpr i64 clamped(i64 x, int bits, bool is_signed) {
  const i64 top = is_signed ? (i64{1} << (bits - 1)) - 1 : (i64{1} << bits) - 1, bottom = is_signed ? -top - 1 : 0;
  return x < bottom ? bottom : x > top ? top : x;
}
i64 s(In in, int k) { return sext(in[k], 32); }
i64 h(In in, int k) { return sext(in[k], 16); }
i64 uh(In in, int k) { return in[k] % 65536; }
u64 keep(u64 half, In in) { return (half & 0xffffU) | (in[6] & 0xffff0000U); } // a 16-bit result beside the old upper half
template <class T> T middle(T a, T b, T c) {
  std::array<T, 3> v{a, b, c};
  std::sort(v.begin(), v.end());
  return v[1];
}
u64 power(u32 n) { return u64{1} << n; }
u32 bit_count(u64 x) {
  u32 n = 0;
  for (; x != 0; x /= 2) n += static_cast<u32>(x % 2);
  return n;
}
u32 reversed(u32 x) {
  u32 r = 0;
  for (int i = 0; i < 32; ++i) r = r * 2 + (x >> i) % 2;
  return r;
}
u32 leading_same(u32 x, u32 bit) { // from the top
  u32 n = 0;
  while (n < 32 && (x >> (31 - n)) % 2 == bit) ++n;
  return n;
}
u32 differences(u32 a, u32 b, int width, bool masked) {
  u32 sum = 0;
  for (int at = 0; at < 32; at += width) {
    const i64 x = (a >> at) % power(static_cast<u32>(width)), y = (b >> at) % power(static_cast<u32>(width));
    if (!masked || y != 0) sum += static_cast<u32>(x > y ? x - y : y - x);
  }
  return sum;
}

constexpr VectorCase words[] = {
    {"v_mov_b32 @, v1", [](In v) -> u64 { return v[1]; }},
    {"v_mov_b64 @@, v[2:3]", [](In v) -> u64 { return pair_in(v, 2); }, Compare::two_words},
    {"v_pk_mov_b32 @@, v[2:3], v[4:5] op_sel:[1,0]", [](In v) -> u64 { return v[3] | u64{v[4]} << 32; }, Compare::two_words},
    {"v_cndmask_b32 @, v1, v2, vcc", [](In v) -> u64 { return vcc_in(v) ? v[2] : v[1]; }},
    {"v_not_b32 @, v1", [](In v) -> u64 { return 0xffffffffU - v[1]; }},
    {"v_and_b32 @, v1, v2", [](In v) -> u64 { return ~(~v[1] | ~v[2]); }},
    {"v_or_b32 @, v1, v2", [](In v) -> u64 { return ~(~v[1] & ~v[2]); }},
    {"v_xor_b32 @, v1, v2", [](In v) -> u64 { return (v[1] | v[2]) - (v[1] & v[2]); }},
    {"v_xnor_b32 @, v1, v2", [](In v) -> u64 { return 0xffffffffU - ((v[1] | v[2]) - (v[1] & v[2])); }},
    {"v_bfrev_b32 @, v1", [](In v) -> u64 { return reversed(v[1]); }},
    {"v_ffbh_u32 @, v1", [](In v) -> u64 { return v[1] == 0 ? 0xffffffffU : leading_same(v[1], 0); }},
    {"v_ffbl_b32 @, v1", [](In v) -> u64 { return v[1] == 0 ? 0xffffffffU : leading_same(reversed(v[1]), 0); }},
    {"v_ffbh_i32 @, v1",
     [](In v) -> u64 {
       const u32 n = leading_same(v[1], v[1] >> 31);
       return n == 32 ? 0xffffffffU : n;
     }},
    {"v_bcnt_u32_b32 @, v1, v2", [](In v) -> u64 { return bit_count(v[1]) + v[2]; }},
    {"v_lshlrev_b32 @, v1, v2", [](In v) -> u64 { return low(static_cast<i64>(v[2] * power(v[1] % 32))); }},
    {"v_lshrrev_b32 @, v1, v2", [](In v) -> u64 { return v[2] / power(v[1] % 32); }},
    {"v_ashrrev_i32 @, v1, v2", [](In v) -> u64 { return low(s(v, 2) >> v[1] % 32); }},
    {"v_lshlrev_b64 @@, v1, v[2:3]", [](In v) -> u64 { return static_cast<u64>(u128{pair_in(v, 2)} * power(v[1] % 64)); },
     Compare::two_words},
    {"v_lshrrev_b64 @@, v1, v[2:3]", [](In v) -> u64 { return pair_in(v, 2) / power(v[1] % 64); }, Compare::two_words},
    {"v_ashrrev_i64 @@, v1, v[2:3]", [](In v) -> u64 { return static_cast<u64>(i128{static_cast<i64>(pair_in(v, 2))} >> v[1] % 64); },
     Compare::two_words},
    {"v_add_u32 @, v1, v2", [](In v) -> u64 { return low(static_cast<i64>(u64{v[1]} + v[2])); }},
    {"v_sub_u32 @, v1, v2", [](In v) -> u64 { return low(i64{v[1]} - v[2]); }},
    {"v_subrev_u32 @, v1, v2", [](In v) -> u64 { return low(i64{v[2]} - v[1]); }},
    {"v_add_i32 @, v1, v2", [](In v) -> u64 { return low(s(v, 1) + s(v, 2)); }},
    {"v_sub_i32 @, v1, v2", [](In v) -> u64 { return low(s(v, 1) - s(v, 2)); }},
    {"v_add_u32_e64 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(i64{v[1]} + v[2], 32, false)); }},
    {"v_sub_u32_e64 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(i64{v[1]} - v[2], 32, false)); }},
    {"v_subrev_u32_e64 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(i64{v[2]} - v[1], 32, false)); }},
    {"v_add_i32 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(s(v, 1) + s(v, 2), 32, true)); }},
    {"v_sub_i32 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(s(v, 1) - s(v, 2), 32, true)); }},
    {"v_mul_u32_u24 @, v1, v2", [](In v) -> u64 { return low(static_cast<i64>(v[1] % power(24) * (v[2] % power(24)))); }},
    {"v_mul_hi_u32_u24 @, v1, v2", [](In v) -> u64 { return v[1] % power(24) * (v[2] % power(24)) / power(32); }},
    {"v_mul_i32_i24 @, v1, v2", [](In v) -> u64 { return low(sext(v[1], 24) * sext(v[2], 24)); }},
    {"v_mul_hi_i32_i24 @, v1, v2", [](In v) -> u64 { return low((sext(v[1], 24) * sext(v[2], 24)) >> 32); }},
    {"v_mad_u32_u24 @, v1, v2, v3", [](In v) -> u64 { return low(static_cast<i64>(v[1] % power(24) * (v[2] % power(24)) + v[3])); }},
    {"v_mad_i32_i24 @, v1, v2, v3", [](In v) -> u64 { return low(sext(v[1], 24) * sext(v[2], 24) + v[3]); }},
    {"v_mul_lo_u32 @, v1, v2", [](In v) -> u64 { return low(static_cast<i64>(u64{v[1]} * v[2])); }},
    {"v_mul_hi_u32 @, v1, v2", [](In v) -> u64 { return u64{v[1]} * v[2] / power(32); }},
    {"v_mul_hi_i32 @, v1, v2", [](In v) -> u64 { return low((s(v, 1) * s(v, 2)) >> 32); }},
    {"v_mad_u64_u32 @@, vcc, v1, v2, v[4:5]", [](In v) -> u64 { return static_cast<u64>(u128{v[1]} * v[2] + pair_in(v, 4)); },
     Compare::two_words},
    {"v_mad_i64_i32 @@, vcc, v1, v2, v[4:5]", [](In v) -> u64 { return static_cast<u64>(i128{s(v, 1)} * s(v, 2) + pair_in(v, 4)); },
     Compare::two_words},
    {"v_mad_u64_u32 v[10:11], vcc, v1, v2, v[4:5]\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 { return (u128{v[1]} * v[2] + pair_in(v, 4)) >> 64 != 0 ? 1 : 0; }},
    {"v_min_u32 @, v1, v2", [](In v) -> u64 { return v[1] < v[2] ? v[1] : v[2]; }},
    {"v_max_u32 @, v1, v2", [](In v) -> u64 { return v[1] < v[2] ? v[2] : v[1]; }},
    {"v_min_i32 @, v1, v2", [](In v) -> u64 { return s(v, 1) < s(v, 2) ? v[1] : v[2]; }},
    {"v_max_i32 @, v1, v2", [](In v) -> u64 { return s(v, 1) < s(v, 2) ? v[2] : v[1]; }},
    {"v_min3_u32 @, v1, v2, v3", [](In v) -> u64 { return std::min({v[1], v[2], v[3]}); }},
    {"v_max3_u32 @, v1, v2, v3", [](In v) -> u64 { return std::max({v[1], v[2], v[3]}); }},
    {"v_min3_i32 @, v1, v2, v3", [](In v) -> u64 { return low(std::min({s(v, 1), s(v, 2), s(v, 3)})); }},
    {"v_max3_i32 @, v1, v2, v3", [](In v) -> u64 { return low(std::max({s(v, 1), s(v, 2), s(v, 3)})); }},
    {"v_med3_u32 @, v1, v2, v3", [](In v) -> u64 { return middle(v[1], v[2], v[3]); }},
    {"v_med3_i32 @, v1, v2, v3", [](In v) -> u64 { return low(middle(s(v, 1), s(v, 2), s(v, 3))); }},
    {"v_bfe_u32 @, v1, v2, v3", [](In v) -> u64 { return v[1] / power(v[2] % 32) % power(v[3] % 32); }},
    {"v_bfe_i32 @, v1, v2, v3",
     [](In v) -> u64 {
       const int w = static_cast<int>(v[3] % 32);
       return w == 0 ? 0 : low(sext(static_cast<u64>(s(v, 1)) >> v[2] % 32, w));
     }},
    {"v_bfi_b32 @, v1, v2, v3", [](In v) -> u64 { return v[3] ^ ((v[2] ^ v[3]) & v[1]); }},
    {"v_bfm_b32 @, v1, v2", [](In v) -> u64 { return low(static_cast<i64>((power(v[1] % 32) - 1) * power(v[2] % 32))); }},
    {"v_alignbit_b32 @, v1, v2, v3", [](In v) -> u64 { return low(static_cast<i64>((u64{v[1]} * power(32) + v[2]) / power(v[3] % 32))); }},
    {"v_alignbyte_b32 @, v1, v2, v3",
     [](In v) -> u64 { return low(static_cast<i64>((u64{v[1]} * power(32) + v[2]) / power(v[3] % 4 * 8))); }},
    {"v_sad_u8 @, v1, v2, v3", [](In v) -> u64 { return low(i64{differences(v[1], v[2], 8, false)} + v[3]); }},
    {"v_sad_hi_u8 @, v1, v2, v3", [](In v) -> u64 { return low(i64{differences(v[1], v[2], 8, false)} * 65536 + v[3]); }},
    {"v_sad_u16 @, v1, v2, v3", [](In v) -> u64 { return low(i64{differences(v[1], v[2], 16, false)} + v[3]); }},
    {"v_sad_u32 @, v1, v2, v3", [](In v) -> u64 { return low(std::max(i64{v[1]}, i64{v[2]}) - std::min(i64{v[1]}, i64{v[2]}) + v[3]); }},
    {"v_msad_u8 @, v1, v2, v3", [](In v) -> u64 { return low(i64{differences(v[1], v[2], 8, true)} + v[3]); }},
    {"v_lerp_u8 @, v1, v2, v3",
     [](In v) -> u64 {
       u64 r = 0;
       for (u32 k = 0; k < 4; ++k)
         r += (v[1] / power(8 * k) % 256 + v[2] / power(8 * k) % 256 + v[3] / power(8 * k) % 2) / 2 * power(8 * k);
       return r;
     }},
    {"v_qsad_pk_u16_u8 @@, v[2:3], v1, v[4:5]",
     [](In v) -> u64 {
       u64 r = 0;
       for (u32 k = 0; k < 4; ++k)
         r += (differences(static_cast<u32>(pair_in(v, 2) >> (8 * k)), v[1], 8, false) + pair_in(v, 4) / power(16 * k)) % 65536 *
              power(16 * k);
       return r;
     },
     Compare::two_words},
    {"v_mqsad_pk_u16_u8 @@, v[2:3], v1, v[4:5]",
     [](In v) -> u64 {
       u64 r = 0;
       for (u32 k = 0; k < 4; ++k)
         r += (differences(static_cast<u32>(pair_in(v, 2) >> (8 * k)), v[1], 8, true) + pair_in(v, 4) / power(16 * k)) % 65536 *
              power(16 * k);
       return r;
     },
     Compare::two_words},
    {"v_mov_b32 v12, v4\n v_mov_b32 v13, v5\n v_mov_b32 v14, v6\n v_mov_b32 v15, v7\n v_mqsad_u32_u8 v[12:15], v[2:3], v1, v[12:15]\n "
     "v_mov_b32 @, v14",
     [](In v) -> u64 { return low(i64{differences(static_cast<u32>(pair_in(v, 2) >> 16), v[1], 8, true)} + v[6]); }},
    {"v_and_or_b32 @, v1, v2, v3", [](In v) -> u64 { return ~(~(v[1] & v[2]) & ~v[3]); }},
    {"v_or3_b32 @, v1, v2, v3", [](In v) -> u64 { return ~(~v[1] & ~v[2] & ~v[3]); }},
    {"v_add3_u32 @, v1, v2, v3", [](In v) -> u64 { return low(i64{v[1]} + v[2] + v[3]); }},
    {"v_xad_u32 @, v1, v2, v3", [](In v) -> u64 { return low(i64{(v[1] | v[2]) - (v[1] & v[2])} + v[3]); }},
    {"v_lshl_add_u32 @, v1, v2, v3", [](In v) -> u64 { return low(static_cast<i64>(v[1] * power(v[2] % 32) + v[3])); }},
    {"v_add_lshl_u32 @, v1, v2, v3", [](In v) -> u64 { return low(static_cast<i64>((u64{v[1]} + v[2]) * power(v[3] % 32))); }},
    {"v_lshl_or_b32 @, v1, v2, v3", [](In v) -> u64 { return ~(~(v[1] * power(v[2] % 32)) & ~u64{v[3]}); }},
    {"v_and_b32 v10, 3, v1\n v_lshl_add_u64 @@, v[2:3], v10, v[4:5]",
     [](In v) -> u64 { return pair_in(v, 2) * power(v[1] % 4) + pair_in(v, 4); }, Compare::two_words},
    {"v_add_co_u32 @, vcc, v1, v2", [](In v) -> u64 { return low(i64{v[1]} + v[2]); }},
    {"v_add_co_u32 v10, vcc, v1, v2\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc", [](In v) -> u64 { return (u64{v[1]} + v[2]) / power(32); }},
    {"v_sub_co_u32 v10, vcc, v1, v2\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc", [](In v) -> u64 { return v[2] > v[1] ? 1 : 0; }},
    {"v_subrev_co_u32 v10, vcc, v1, v2\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc", [](In v) -> u64 { return v[1] > v[2] ? 1 : 0; }},
    {"v_addc_co_u32 @, vcc, v1, v2, vcc", [](In v) -> u64 { return low(i64{v[1]} + v[2] + vcc_in(v)); }},
    {"v_subb_co_u32 @, vcc, v1, v2, vcc", [](In v) -> u64 { return low(i64{v[1]} - v[2] - vcc_in(v)); }},
    {"v_subbrev_co_u32 @, vcc, v1, v2, vcc", [](In v) -> u64 { return low(i64{v[2]} - v[1] - vcc_in(v)); }},
    {"v_addc_co_u32 v10, vcc, v1, v2, vcc\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 { return (u64{v[1]} + v[2] + vcc_in(v)) / power(32); }},
    {"v_subb_co_u32 v10, vcc, v1, v2, vcc\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 { return u64{v[2]} + vcc_in(v) > v[1] ? 1 : 0; }},
    {"v_mbcnt_lo_u32_b32 @, 0, v1", [](In v) -> u64 { return v[1]; }},
};

constexpr VectorCase half_words[] = {
    {"v_add_u16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 1) + uh(v, 2), 16); }},
    {"v_sub_u16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 1) - uh(v, 2), 16); }},
    {"v_subrev_u16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 2) - uh(v, 1), 16); }},
    {"v_add_u16_e64 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(uh(v, 1) + uh(v, 2), 16, false)); }},
    {"v_sub_u16_e64 @, v1, v2 clamp", [](In v) -> u64 { return low(clamped(uh(v, 1) - uh(v, 2), 16, false)); }},
    {"v_add_i16 @, v1, v2", [](In v) -> u64 { return keep(low(h(v, 1) + h(v, 2)), v); }},
    {"v_sub_i16 @, v1, v2", [](In v) -> u64 { return keep(low(h(v, 1) - h(v, 2)), v); }},
    {"v_add_i16 @, v1, v2 clamp", [](In v) -> u64 { return keep(low(clamped(h(v, 1) + h(v, 2), 16, true)), v); }},
    {"v_sub_i16 @, v1, v2 clamp", [](In v) -> u64 { return keep(low(clamped(h(v, 1) - h(v, 2), 16, true)), v); }},
    {"v_mul_lo_u16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 1) * uh(v, 2), 16); }},
    {"v_mad_u16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(uh(v, 1) * uh(v, 2) + uh(v, 3)), v); }},
    {"v_mad_i16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(h(v, 1) * h(v, 2) + h(v, 3)), v); }},
    {"v_mad_legacy_u16 @, v1, v2, v3", [](In v) -> u64 { return low(uh(v, 1) * uh(v, 2) + uh(v, 3), 16); }},
    {"v_mad_legacy_i16 @, v1, v2, v3", [](In v) -> u64 { return low(h(v, 1) * h(v, 2) + h(v, 3), 16); }},
    {"v_mad_u32_u16 @, v1, v2, v3", [](In v) -> u64 { return low(uh(v, 1) * uh(v, 2) + v[3]); }},
    {"v_mad_i32_i16 @, v1, v2, v3", [](In v) -> u64 { return low(h(v, 1) * h(v, 2) + v[3]); }},
    {"v_mad_u32_u16 @, v1, v2, v3 op_sel:[1,0,0,0]", [](In v) -> u64 { return low(i64{v[1] / 65536} * uh(v, 2) + v[3]); }},
    {"v_lshlrev_b16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 2) << v[1] % 16, 16); }},
    {"v_lshrrev_b16 @, v1, v2", [](In v) -> u64 { return low(uh(v, 2) >> v[1] % 16, 16); }},
    {"v_ashrrev_i16 @, v1, v2", [](In v) -> u64 { return low(h(v, 2) >> v[1] % 16, 16); }},
    {"v_min_u16 @, v1, v2", [](In v) -> u64 { return low(std::min(uh(v, 1), uh(v, 2))); }},
    {"v_max_u16 @, v1, v2", [](In v) -> u64 { return low(std::max(uh(v, 1), uh(v, 2))); }},
    {"v_min_i16 @, v1, v2", [](In v) -> u64 { return low(std::min(h(v, 1), h(v, 2)), 16); }},
    {"v_max_i16 @, v1, v2", [](In v) -> u64 { return low(std::max(h(v, 1), h(v, 2)), 16); }},
    {"v_min3_u16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(std::min({uh(v, 1), uh(v, 2), uh(v, 3)})), v); }},
    {"v_max3_u16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(std::max({uh(v, 1), uh(v, 2), uh(v, 3)})), v); }},
    {"v_min3_i16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(std::min({h(v, 1), h(v, 2), h(v, 3)})), v); }},
    {"v_max3_i16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(std::max({h(v, 1), h(v, 2), h(v, 3)})), v); }},
    {"v_med3_u16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(middle(uh(v, 1), uh(v, 2), uh(v, 3))), v); }},
    {"v_med3_i16 @, v1, v2, v3", [](In v) -> u64 { return keep(low(middle(h(v, 1), h(v, 2), h(v, 3))), v); }},
    {"v_sat_pk_u8_i16 @, v1",
     [](In v) -> u64 { return low(clamped(h(v, 1), 8, false) + 256 * clamped(sext(v[1] / 65536, 16), 8, false)); }},
    {"v_cvt_pk_u16_u32 @, v1, v2", [](In v) -> u64 { return low(clamped(v[1], 16, false) + 65536 * clamped(v[2], 16, false)); }},
    {"v_cvt_pk_i16_i32 @, v1, v2",
     [](In v) -> u64 { return low(clamped(s(v, 1), 16, true), 16) + 65536 * low(clamped(s(v, 2), 16, true), 16); }},
};

// Halves of packed results.
template <class F> u64 each(F f, In v) {
  const auto half = [&](int shift) {
    const u32 a[4] = {0, v[1] >> shift & 0xffffU, v[2] >> shift & 0xffffU, v[3] >> shift & 0xffffU};
    return low(f(a), 16);
  };
  return half(0) | half(16) << 16;
}
template <int width> i64 dot(In v, bool is_signed) {
  i64 sum = 0;
  for (int at = 0; at < 32; at += width) {
    const u64 a = v[1] >> at & (power(width) - 1), b = v[2] >> at & (power(width) - 1);
    sum += is_signed ? sext(a, width) * sext(b, width) : static_cast<i64>(a * b);
  }
  return sum;
}

constexpr VectorCase packed[] = {
    {"v_pk_add_u16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return uh(a, 1) + uh(a, 2); }, v); }},
    {"v_pk_add_i16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return h(a, 1) + h(a, 2); }, v); }},
    {"v_pk_sub_u16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return uh(a, 1) - uh(a, 2); }, v); }},
    {"v_pk_sub_i16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return h(a, 1) - h(a, 2); }, v); }},
    {"v_pk_add_u16 @, v1, v2 clamp", [](In v) -> u64 { return each([](In a) { return clamped(uh(a, 1) + uh(a, 2), 16, false); }, v); }},
    {"v_pk_add_i16 @, v1, v2 clamp", [](In v) -> u64 { return each([](In a) { return clamped(h(a, 1) + h(a, 2), 16, true); }, v); }},
    {"v_pk_sub_u16 @, v1, v2 clamp", [](In v) -> u64 { return each([](In a) { return clamped(uh(a, 1) - uh(a, 2), 16, false); }, v); }},
    {"v_pk_sub_i16 @, v1, v2 clamp", [](In v) -> u64 { return each([](In a) { return clamped(h(a, 1) - h(a, 2), 16, true); }, v); }},
    {"v_pk_mul_lo_u16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return uh(a, 1) * uh(a, 2); }, v); }},
    {"v_pk_mad_u16 @, v1, v2, v3", [](In v) -> u64 { return each([](In a) { return uh(a, 1) * uh(a, 2) + uh(a, 3); }, v); }},
    {"v_pk_mad_i16 @, v1, v2, v3", [](In v) -> u64 { return each([](In a) { return h(a, 1) * h(a, 2) + h(a, 3); }, v); }},
    {"v_pk_min_u16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return std::min(uh(a, 1), uh(a, 2)); }, v); }},
    {"v_pk_min_i16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return std::min(h(a, 1), h(a, 2)); }, v); }},
    {"v_pk_max_u16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return std::max(uh(a, 1), uh(a, 2)); }, v); }},
    {"v_pk_max_i16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return std::max(h(a, 1), h(a, 2)); }, v); }},
    {"v_pk_lshlrev_b16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return uh(a, 2) << a[1] % 16; }, v); }},
    {"v_pk_lshrrev_b16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return uh(a, 2) >> a[1] % 16; }, v); }},
    {"v_pk_ashrrev_i16 @, v1, v2", [](In v) -> u64 { return each([](In a) { return h(a, 2) >> a[1] % 16; }, v); }},
    {"v_dot2_i32_i16 @, v1, v2, v3", [](In v) -> u64 { return low(dot<16>(v, true) + v[3]); }},
    {"v_dot2_u32_u16 @, v1, v2, v3", [](In v) -> u64 { return low(dot<16>(v, false) + v[3]); }},
    {"v_dot2_i32_i16 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<16>(v, true) + s(v, 3), 32, true)); }},
    {"v_dot2_u32_u16 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<16>(v, false) + v[3], 32, false)); }},
    {"v_dot2c_i32_i16 @, v1, v2", [](In v) -> u64 { return low(dot<16>(v, true) + v[6]); }},
    {"v_dot4_i32_i8 @, v1, v2, v3", [](In v) -> u64 { return low(dot<8>(v, true) + v[3]); }},
    {"v_dot4_u32_u8 @, v1, v2, v3", [](In v) -> u64 { return low(dot<8>(v, false) + v[3]); }},
    {"v_dot4_i32_i8 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<8>(v, true) + s(v, 3), 32, true)); }},
    {"v_dot4_u32_u8 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<8>(v, false) + v[3], 32, false)); }},
    {"v_dot4c_i32_i8 @, v1, v2", [](In v) -> u64 { return low(dot<8>(v, true) + v[6]); }},
    {"v_dot8_i32_i4 @, v1, v2, v3", [](In v) -> u64 { return low(dot<4>(v, true) + v[3]); }},
    {"v_dot8_u32_u4 @, v1, v2, v3", [](In v) -> u64 { return low(dot<4>(v, false) + v[3]); }},
    {"v_dot8_i32_i4 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<4>(v, true) + s(v, 3), 32, true)); }},
    {"v_dot8_u32_u4 @, v1, v2, v3 clamp", [](In v) -> u64 { return low(clamped(dot<4>(v, false) + v[3], 32, false)); }},
    {"v_dot8c_i32_i4 @, v1, v2", [](In v) -> u64 { return low(dot<4>(v, true) + v[6]); }},
};

constexpr VectorCase newer[] = {
    // gfx950 only
    {"v_bitop3_b32 @, v1, v2, v3 bitop3:0x96", [](In v) -> u64 { return v[1] ^ v[2] ^ v[3]; }},
    {"v_bitop3_b32 @, v1, v2, v3 bitop3:0x35",
     [](In v) -> u64 {
       u32 r = 0;
       for (u32 i = 0; i < 32; ++i) r |= (0x35U >> ((v[1] >> i) % 2 * 4 + (v[2] >> i) % 2 * 2 + (v[3] >> i) % 2) & 1U) << i;
       return r;
     }},
    {"v_bitop3_b16 @, v1, v2, v3 bitop3:0xe8", [](In v) -> u64 { return keep((v[1] & v[2]) | (v[2] & v[3]) | (v[1] & v[3]), v); }},
    {"v_ashr_pk_i8_i32 @, v1, v2, v3",
     [](In v) -> u64 { return low(clamped(s(v, 1) >> v[3] % 32, 8, true), 8) | low(clamped(s(v, 2) >> v[3] % 32, 8, true), 8) << 8; },
     Compare::half_word},
    {"v_ashr_pk_u8_i32 @, v1, v2, v3",
     [](In v) -> u64 { return low(clamped(s(v, 1) >> v[3] % 32, 8, false)) | low(clamped(s(v, 2) >> v[3] % 32, 8, false)) << 8; },
     Compare::half_word},
    {"v_prng_b32 @, v1", [](In v) -> u64 { return low(static_cast<i64>(u64{v[1]} * 2)) ^ (s(v, 1) < 0 ? 0xc5U : 0U); }},
};

} // namespace

TEST_CASE("integer instructions of the vector unit, each over all pairs of edge values") {
  const auto sets = pairs_of(interesting_integers(), 4, 11);
  int cases = 0;
  for (const char* arch : {"gfx942", "gfx950"}) cases += check_vector(words, sets, arch) + check_vector(half_words, sets, arch);
  MESSAGE(fmt::format("{} cases of integer instructions", cases));
}

TEST_CASE("packed integer instructions and dot products, each over all pairs of edge values") {
  const auto sets = pairs_of(interesting_integers(), 4, 12);
  MESSAGE(fmt::format("{} cases of packed integer instructions",
                      check_vector(packed, sets) + check_vector(packed, sets, "gfx950") + check_vector(newer, sets, "gfx950")));
}

} // namespace integer_test
