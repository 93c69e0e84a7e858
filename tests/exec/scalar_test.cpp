// Every scalar arithmetic, bit and comparison instruction against a formula, with SCC.
#include "tests/exec/instruction_cases.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace scalar_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
__extension__ using i128 = __int128;
using R = ScalarResult;

constexpr u64 cut(i64 x) { return static_cast<u64>(x) % (u64{1} << 32); }
i64 s(In v, int k) { return static_cast<std::int32_t>(v[k]); }
i64 wide(In v, int k) { return static_cast<i64>(pair_in(v, k)); }
bool fits(i64 x) { return x >= -2147483648LL && x <= 2147483647LL; }
u64 power(u32 n) { return u64{1} << n; }
R nonzero(u64 x) { return {x, x != 0}; }
R kept(u64 x, In v) { return {x, scc_in(v)}; } // SCC stays
u32 ones(u64 x) {
  u32 n = 0;
  for (; x != 0; x /= 2) n += static_cast<u32>(x % 2);
  return n;
}
u32 first(u64 x, int bits, bool from_top, u32 wanted) { // the distance to the first bit that is `wanted`; -1: none
  for (int i = 0; i < bits; ++i)
    if ((x >> (from_top ? bits - 1 - i : i)) % 2 == wanted) return static_cast<u32>(i);
  return 0xffffffffU;
}
u64 mirrored(u64 x, int bits) {
  u64 r = 0;
  for (int i = 0; i < bits; ++i) r = r * 2 + (x >> i) % 2;
  return r;
}
u64 quads(u64 x, int bits, bool whole) {
  u64 r = 0;
  for (int i = 0; i < bits; i += 4)
    if ((x >> i) % 16 != 0) r |= whole ? u64{15} << i : u64{1} << (i / 4);
  return r;
}
template <int bits> u64 field(u64 x, u32 control, bool is_signed) {
  const u32 offset = control % bits, width = control >> 16 & 127;
  if (width == 0) return 0;
  const u64 part = x >> offset;
  const u32 kept_bits = std::min(width, static_cast<u32>(bits) - offset); // bits above the register are its sign, or 0
  const u64 value = kept_bits == 64 ? part : part % power(kept_bits);
  const bool negative = is_signed && (value >> (kept_bits - 1)) % 2 == 1;
  const u64 r = negative ? value - (kept_bits == 64 ? 0 : power(kept_bits)) : value;
  return bits == 64 ? r : r % power(32);
}

// `a` and `b` are in s21, s22; pairs in s[22:23] and s[24:25].
constexpr ScalarCase words[] = {
    {"s_add_u32 @, s21, s22", [](In v) { return R{cut(i64{v[1]} + v[2]), u64{v[1]} + v[2] >= power(32)}; }},
    {"s_sub_u32 @, s21, s22", [](In v) { return R{cut(i64{v[1]} - v[2]), v[1] < v[2]}; }},
    {"s_addc_u32 @, s21, s22", [](In v) { return R{cut(i64{v[1]} + v[2] + scc_in(v)), u64{v[1]} + v[2] + scc_in(v) >= power(32)}; }},
    {"s_subb_u32 @, s21, s22", [](In v) { return R{cut(i64{v[1]} - v[2] - scc_in(v)), i64{v[1]} - v[2] - scc_in(v) < 0}; }},
    {"s_add_i32 @, s21, s22", [](In v) { return R{cut(s(v, 1) + s(v, 2)), !fits(s(v, 1) + s(v, 2))}; }},
    {"s_sub_i32 @, s21, s22", [](In v) { return R{cut(s(v, 1) - s(v, 2)), !fits(s(v, 1) - s(v, 2))}; }},
    {"s_addk_i32 @, 0x8001", [](In v) { return R{cut(s(v, 6) - 32767), !fits(s(v, 6) - 32767)}; }},
    {"s_mulk_i32 @, 0xfffd", [](In v) { return kept(cut(s(v, 6) * -3), v); }},
    {"s_min_i32 @, s21, s22", [](In v) { return R{cut(std::min(s(v, 1), s(v, 2))), s(v, 1) < s(v, 2)}; }},
    {"s_max_i32 @, s21, s22", [](In v) { return R{cut(std::max(s(v, 1), s(v, 2))), s(v, 1) > s(v, 2)}; }},
    {"s_min_u32 @, s21, s22", [](In v) { return R{std::min(v[1], v[2]), v[1] < v[2]}; }},
    {"s_max_u32 @, s21, s22", [](In v) { return R{std::max(v[1], v[2]), v[1] > v[2]}; }},
    {"s_mul_i32 @, s21, s22", [](In v) { return kept(cut(s(v, 1) * s(v, 2)), v); }},
    {"s_mul_hi_u32 @, s21, s22", [](In v) { return kept(u64{v[1]} * v[2] / power(32), v); }},
    {"s_mul_hi_i32 @, s21, s22", [](In v) { return kept(cut((s(v, 1) * s(v, 2)) >> 32), v); }},
    {"s_abs_i32 @, s21", [](In v) { return nonzero(cut(s(v, 1) < 0 ? -s(v, 1) : s(v, 1))); }},
    {"s_absdiff_i32 @, s21, s22", [](In v) { return nonzero(cut(std::max(s(v, 1), s(v, 2)) - std::min(s(v, 1), s(v, 2)))); }},
    {"s_cselect_b32 @, s21, s22", [](In v) { return kept(scc_in(v) ? v[1] : v[2], v); }},
    {"s_mov_b32 @, s21", [](In v) { return kept(v[1], v); }},
    {"s_movk_i32 @, 0x9876", [](In v) { return kept(0xffff9876U, v); }},
    {"s_cmov_b32 @, s21", [](In v) { return kept(scc_in(v) ? v[1] : v[6], v); }},
    {"s_cmovk_i32 @, 0x8000", [](In v) { return kept(scc_in(v) ? 0xffff8000U : v[6], v); }},
    {"s_pack_ll_b32_b16 @, s21, s22", [](In v) { return kept(v[1] % 65536 + v[2] % 65536 * 65536, v); }},
    {"s_pack_lh_b32_b16 @, s21, s22", [](In v) { return kept(v[1] % 65536 + v[2] / 65536 * 65536, v); }},
    {"s_pack_hh_b32_b16 @, s21, s22", [](In v) { return kept(v[1] / 65536 + v[2] / 65536 * 65536, v); }},
    {"s_lshl1_add_u32 @, s21, s22", [](In v) { return R{cut(static_cast<i64>(u64{v[1]} * 2 + v[2])), u64{v[1]} * 2 + v[2] >= power(32)}; }},
    {"s_lshl2_add_u32 @, s21, s22", [](In v) { return R{cut(static_cast<i64>(u64{v[1]} * 4 + v[2])), u64{v[1]} * 4 + v[2] >= power(32)}; }},
    {"s_lshl3_add_u32 @, s21, s22", [](In v) { return R{cut(static_cast<i64>(u64{v[1]} * 8 + v[2])), u64{v[1]} * 8 + v[2] >= power(32)}; }},
    {"s_lshl4_add_u32 @, s21, s22",
     [](In v) { return R{cut(static_cast<i64>(u64{v[1]} * 16 + v[2])), u64{v[1]} * 16 + v[2] >= power(32)}; }},
    {"s_and_b32 @, s21, s22", [](In v) { return nonzero(cut(~static_cast<i64>(~u64{v[1]} | ~u64{v[2]}))); }},
    {"s_or_b32 @, s21, s22", [](In v) { return nonzero(u64{v[1]} + v[2] - (v[1] & v[2])); }},
    {"s_xor_b32 @, s21, s22", [](In v) { return nonzero(u64{v[1] | v[2]} - (v[1] & v[2])); }},
    {"s_andn2_b32 @, s21, s22", [](In v) { return nonzero(v[1] - (v[1] & v[2])); }},
    {"s_orn2_b32 @, s21, s22", [](In v) { return nonzero(0xffffffffU - (v[2] - (v[1] & v[2]))); }},
    {"s_nand_b32 @, s21, s22", [](In v) { return nonzero(0xffffffffU - (v[1] & v[2])); }},
    {"s_nor_b32 @, s21, s22", [](In v) { return nonzero(0xffffffffU - (v[1] | v[2])); }},
    {"s_xnor_b32 @, s21, s22", [](In v) { return nonzero(0xffffffffU - ((v[1] | v[2]) - (v[1] & v[2]))); }},
    {"s_not_b32 @, s21", [](In v) { return nonzero(0xffffffffU - v[1]); }},
    {"s_wqm_b32 @, s21", [](In v) { return nonzero(quads(v[1], 32, true)); }},
    {"s_quadmask_b32 @, s21", [](In v) { return nonzero(quads(v[1], 32, false)); }},
    {"s_quadmask_b64 @@, s[22:23]", [](In v) { return nonzero(quads(pair_in(v, 2), 64, false)); }, true},
    {"s_lshl_b32 @, s21, s22", [](In v) { return nonzero(cut(static_cast<i64>(v[1] * power(v[2] % 32)))); }},
    {"s_lshr_b32 @, s21, s22", [](In v) { return nonzero(v[1] / power(v[2] % 32)); }},
    {"s_ashr_i32 @, s21, s22", [](In v) { return nonzero(cut(s(v, 1) >> v[2] % 32)); }},
    {"s_bfe_u32 @, s21, s22", [](In v) { return nonzero(field<32>(v[1], v[2], false)); }},
    {"s_bfe_i32 @, s21, s22", [](In v) { return nonzero(field<32>(v[1], v[2], true)); }},
    {"s_bfm_b32 @, s21, s22", [](In v) { return kept(cut(static_cast<i64>((power(v[1] % 32) - 1) * power(v[2] % 32))), v); }},
    {"s_bitset0_b32 @, s21", [](In v) { return kept(v[6] - (v[6] & power(v[1] % 32)), v); }},
    {"s_bitset1_b32 @, s21", [](In v) { return kept(v[6] | power(v[1] % 32), v); }},
    {"s_brev_b32 @, s21", [](In v) { return kept(mirrored(v[1], 32), v); }},
    {"s_bcnt0_i32_b32 @, s21", [](In v) { return nonzero(32 - ones(v[1])); }},
    {"s_bcnt1_i32_b32 @, s21", [](In v) { return nonzero(ones(v[1])); }},
    {"s_bcnt0_i32_b64 @, s[22:23]", [](In v) { return nonzero(64 - ones(pair_in(v, 2))); }},
    {"s_bcnt1_i32_b64 @, s[22:23]", [](In v) { return nonzero(ones(pair_in(v, 2))); }},
    {"s_ff0_i32_b32 @, s21", [](In v) { return kept(first(v[1], 32, false, 0), v); }},
    {"s_ff1_i32_b32 @, s21", [](In v) { return kept(first(v[1], 32, false, 1), v); }},
    {"s_ff0_i32_b64 @, s[22:23]", [](In v) { return kept(first(pair_in(v, 2), 64, false, 0), v); }},
    {"s_ff1_i32_b64 @, s[22:23]", [](In v) { return kept(first(pair_in(v, 2), 64, false, 1), v); }},
    {"s_flbit_i32_b32 @, s21", [](In v) { return kept(first(v[1], 32, true, 1), v); }},
    {"s_flbit_i32_b64 @, s[22:23]", [](In v) { return kept(first(pair_in(v, 2), 64, true, 1), v); }},
    {"s_flbit_i32 @, s21", [](In v) { return kept(first(v[1], 32, true, 1 - v[1] / 2147483648U), v); }},
    {"s_flbit_i32_i64 @, s[22:23]", [](In v) { return kept(first(pair_in(v, 2), 64, true, 1 - v[3] / 2147483648U), v); }},
    {"s_sext_i32_i8 @, s21", [](In v) { return kept(cut(i64{v[1] % 256} - (v[1] % 256 > 127 ? 256 : 0)), v); }},
    {"s_sext_i32_i16 @, s21", [](In v) { return kept(cut(i64{v[1] % 65536} - (v[1] % 65536 > 32767 ? 65536 : 0)), v); }},
};

constexpr ScalarCase pairs[] = {
    {"s_cselect_b64 @@, s[22:23], s[24:25]", [](In v) { return kept(scc_in(v) ? pair_in(v, 2) : pair_in(v, 4), v); }, true},
    {"s_mov_b64 @@, s[22:23]", [](In v) { return kept(pair_in(v, 2), v); }, true},
    {"s_cmov_b64 @@, s[22:23]", [](In v) { return kept(scc_in(v) ? pair_in(v, 2) : pair_in(v, 6), v); }, true},
    {"s_and_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(~(~pair_in(v, 2) | ~pair_in(v, 4))); }, true},
    {"s_or_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(~(~pair_in(v, 2) & ~pair_in(v, 4))); }, true},
    {"s_xor_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero((pair_in(v, 2) | pair_in(v, 4)) - (pair_in(v, 2) & pair_in(v, 4))); },
     true},
    {"s_andn2_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(pair_in(v, 2) - (pair_in(v, 2) & pair_in(v, 4))); }, true},
    {"s_orn2_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(~(pair_in(v, 4) - (pair_in(v, 2) & pair_in(v, 4)))); }, true},
    {"s_nand_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(~pair_in(v, 2) | ~pair_in(v, 4)); }, true},
    {"s_nor_b64 @@, s[22:23], s[24:25]", [](In v) { return nonzero(~pair_in(v, 2) & ~pair_in(v, 4)); }, true},
    {"s_xnor_b64 @@, s[22:23], s[24:25]",
     [](In v) { return nonzero(~((pair_in(v, 2) | pair_in(v, 4)) - (pair_in(v, 2) & pair_in(v, 4)))); }, true},
    {"s_not_b64 @@, s[22:23]", [](In v) { return nonzero(~u64{0} - pair_in(v, 2)); }, true},
    {"s_wqm_b64 @@, s[22:23]", [](In v) { return nonzero(quads(pair_in(v, 2), 64, true)); }, true},
    {"s_lshl_b64 @@, s[22:23], s21", [](In v) { return nonzero(pair_in(v, 2) * power(v[1] % 64)); }, true},
    {"s_lshr_b64 @@, s[22:23], s21", [](In v) { return nonzero(pair_in(v, 2) / power(v[1] % 64)); }, true},
    {"s_ashr_i64 @@, s[22:23], s21", [](In v) { return nonzero(static_cast<u64>(i128{wide(v, 2)} >> v[1] % 64)); }, true},
    {"s_bfe_u64 @@, s[22:23], s21", [](In v) { return nonzero(field<64>(pair_in(v, 2), v[1], false)); }, true},
    {"s_bfe_i64 @@, s[22:23], s21", [](In v) { return nonzero(field<64>(pair_in(v, 2), v[1], true)); }, true},
    {"s_bfm_b64 @@, s21, s22", [](In v) { return kept((power(v[1] % 64) - 1) * power(v[2] % 64), v); }, true},
    {"s_bitset0_b64 @@, s21", [](In v) { return kept(pair_in(v, 6) - (pair_in(v, 6) & power(v[1] % 64)), v); }, true},
    {"s_bitset1_b64 @@, s21", [](In v) { return kept(pair_in(v, 6) | power(v[1] % 64), v); }, true},
    {"s_brev_b64 @@, s[22:23]", [](In v) { return kept(mirrored(pair_in(v, 2), 64), v); }, true},
    {"s_bitreplicate_b64_b32 @@, s21",
     [](In v) {
       u64 r = 0;
       for (int i = 31; i >= 0; --i) r = r * 4 + (v[1] >> i) % 2 * 3;
       return kept(r, v);
     },
     true},
};

// EXEC is set before and put back after; SCC comes from the new EXEC, which is the result of the second text of each pair.
#define KILN_SAVEEXEC(op, formula)                                                                                                         \
  {"s_mov_b64 exec, s[24:25]\n s_" op "_saveexec_b64 @@, s[22:23]\n s_mov_b64 exec, -1",                                                   \
   [](In v) {                                                                                                                              \
     const u64 a = pair_in(v, 2), e = pair_in(v, 4);                                                                                       \
     return R{e, (formula) != 0};                                                                                                          \
   },                                                                                                                                      \
   true},                                                                                                                                  \
  {                                                                                                                                        \
    "s_mov_b64 exec, s[24:25]\n s_" op "_saveexec_b64 s[50:51], s[22:23]\n s_mov_b64 @@, exec\n s_mov_b64 exec, -1",                       \
        [](In v) {                                                                                                                         \
          const u64 a = pair_in(v, 2), e = pair_in(v, 4);                                                                                  \
          return nonzero(formula);                                                                                                         \
        },                                                                                                                                 \
        true                                                                                                                               \
  }
constexpr ScalarCase exec_masks[] = {
    KILN_SAVEEXEC("and", ~(~a | ~e)),
    KILN_SAVEEXEC("or", ~(~a & ~e)),
    KILN_SAVEEXEC("xor", (a | e) - (a & e)),
    KILN_SAVEEXEC("andn2", a - (a & e)),
    KILN_SAVEEXEC("orn2", ~(e - (a & e))),
    KILN_SAVEEXEC("nand", ~a | ~e),
    KILN_SAVEEXEC("nor", ~a & ~e),
    KILN_SAVEEXEC("xnor", ~((a | e) - (a & e))),
    KILN_SAVEEXEC("andn1", e - (a & e)),
    KILN_SAVEEXEC("orn1", ~(a - (a & e))),
    {"s_mov_b64 exec, s[24:25]\n s_andn1_wrexec_b64 @@, s[22:23]\n s_mov_b64 exec, -1",
     [](In v) { return nonzero(pair_in(v, 4) - (pair_in(v, 2) & pair_in(v, 4))); }, true},
    {"s_mov_b64 exec, s[24:25]\n s_andn2_wrexec_b64 @@, s[22:23]\n s_mov_b64 exec, -1",
     [](In v) { return nonzero(pair_in(v, 2) - (pair_in(v, 2) & pair_in(v, 4))); }, true},
};

#define KILN_CONDITION(text, condition) {text, [](In v) { return R{v[6], (condition)}; }}
constexpr ScalarCase comparisons[] = {
    KILN_CONDITION("s_cmp_eq_i32 s21, s22", s(v, 1) - s(v, 2) == 0),
    KILN_CONDITION("s_cmp_lg_i32 s21, s22", s(v, 1) - s(v, 2) != 0),
    KILN_CONDITION("s_cmp_gt_i32 s21, s22", s(v, 1) - s(v, 2) > 0),
    KILN_CONDITION("s_cmp_ge_i32 s21, s22", s(v, 1) - s(v, 2) >= 0),
    KILN_CONDITION("s_cmp_lt_i32 s21, s22", s(v, 1) - s(v, 2) < 0),
    KILN_CONDITION("s_cmp_le_i32 s21, s22", s(v, 1) - s(v, 2) <= 0),
    KILN_CONDITION("s_cmp_eq_u32 s21, s22", i64{v[1]} - v[2] == 0),
    KILN_CONDITION("s_cmp_lg_u32 s21, s22", i64{v[1]} - v[2] != 0),
    KILN_CONDITION("s_cmp_gt_u32 s21, s22", i64{v[1]} - v[2] > 0),
    KILN_CONDITION("s_cmp_ge_u32 s21, s22", i64{v[1]} - v[2] >= 0),
    KILN_CONDITION("s_cmp_lt_u32 s21, s22", i64{v[1]} - v[2] < 0),
    KILN_CONDITION("s_cmp_le_u32 s21, s22", i64{v[1]} - v[2] <= 0),
    KILN_CONDITION("s_cmp_eq_u64 s[22:23], s[24:25]", v[2] == v[4] && v[3] == v[5]),
    KILN_CONDITION("s_cmp_lg_u64 s[22:23], s[24:25]", v[2] != v[4] || v[3] != v[5]),
    KILN_CONDITION("s_cmpk_eq_i32 s21, 0x8000", s(v, 1) == -32768),
    KILN_CONDITION("s_cmpk_lg_i32 s21, 0x1f", s(v, 1) != 31),
    KILN_CONDITION("s_cmpk_gt_i32 s21, 0xffff", s(v, 1) > -1),
    KILN_CONDITION("s_cmpk_ge_i32 s21, 0x20", s(v, 1) >= 32),
    KILN_CONDITION("s_cmpk_lt_i32 s21, 0xfffe", s(v, 1) < -2),
    KILN_CONDITION("s_cmpk_le_i32 s21, 1", s(v, 1) <= 1),
    KILN_CONDITION("s_cmpk_eq_u32 s21, 0xffff", v[1] == 65535),
    KILN_CONDITION("s_cmpk_lg_u32 s21, 0x8000", v[1] != 32768),
    KILN_CONDITION("s_cmpk_gt_u32 s21, 0xfffe", v[1] > 65534),
    KILN_CONDITION("s_cmpk_ge_u32 s21, 0x8000", v[1] >= 32768),
    KILN_CONDITION("s_cmpk_lt_u32 s21, 0xffff", v[1] < 65535),
    KILN_CONDITION("s_cmpk_le_u32 s21, 0x7f", v[1] <= 127),
    KILN_CONDITION("s_bitcmp0_b32 s21, s22", v[1] / power(v[2] % 32) % 2 == 0),
    KILN_CONDITION("s_bitcmp1_b32 s21, s22", v[1] / power(v[2] % 32) % 2 == 1),
    KILN_CONDITION("s_bitcmp0_b64 s[22:23], s21", pair_in(v, 2) / power(v[1] % 64) % 2 == 0),
    KILN_CONDITION("s_bitcmp1_b64 s[22:23], s21", pair_in(v, 2) / power(v[1] % 64) % 2 == 1),
};

} // namespace

TEST_CASE("scalar instructions over all pairs of edge values") {
  const auto sets = pairs_of(interesting_integers(), 4, 41);
  int cases = check_scalar(words, sets) + check_scalar(pairs, sets) + check_scalar(exec_masks, sets) + check_scalar(comparisons, sets);
  // Fields whose width and offset are likely ones.
  std::vector<u32> controls;
  for (const u32 width : {0U, 1U, 5U, 31U, 32U, 33U, 64U, 127U})
    for (const u32 offset : {0U, 1U, 30U, 31U, 40U, 63U}) controls.push_back(width << 16 | offset);
  Pairs fields{};
  for (std::size_t i = 0; i < 64; ++i) {
    fields.a[i] = i % 2 == 0 ? 0x9234f001U * static_cast<u32>(i + 1) : controls[i % controls.size()];
    fields.b[i] = controls[(i * 5) % controls.size()];
  }
  cases += check_scalar(words, {fields}) + check_scalar(pairs, {fields});
  MESSAGE(fmt::format("{} cases of scalar instructions", cases));
}

} // namespace scalar_test
