// Floating-point instructions of the vector unit against exact arithmetic that is rounded once.
#include "tests/exec/exact_float.h"
#include "tests/exec/instruction_cases.h"
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace float_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

u64 single(double x) { return as_bits(static_cast<float>(x)); }
double d(In v, int k) { return static_cast<double>(float_in(v, k)); }
u64 fused(double a, double b, double c) { return as_bits(to_single(sum(a * b, c), nearest)); } // a and b are floats: their product is exact
bool nan32(u32 x) { return x % (1U << 31) > 0x7f800000U; }
// Numbers in order, with -0 below +0.
i64 key(u32 x) { return x >> 31 != 0 ? -static_cast<i64>(x % (1U << 31)) - 1 : static_cast<i64>(x); }
// With MODE.IEEE, as kernels run: a signalling NaN comes out quiet, a quiet one gives way to a number.
bool signalling(u32 a) { return nan32(a) && (a & 0x400000U) == 0; }
u32 of_numbers(u32 a, u32 b, bool first) {
  if (signalling(a) || signalling(b)) return (signalling(a) ? a : b) | 0x400000U;
  return nan32(a) ? b : nan32(b) ? a : first ? a : b;
}
u32 lesser(u32 a, u32 b) { return of_numbers(a, b, key(a) < key(b)); }
u32 greater(u32 a, u32 b) { return of_numbers(a, b, key(a) >= key(b)); }
u32 strict_lesser(u32 a, u32 b) { return nan32(a) || nan32(b) ? 0x7fc00000U : lesser(a, b); }
u32 strict_greater(u32 a, u32 b) { return nan32(a) || nan32(b) ? 0x7fc00000U : greater(a, b); }
u64 pair(u64 low, u64 high) { return low | high << 32; }
float no_denormal(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x; }
u64 one_step(double exact) { return as_bits(no_denormal(static_cast<float>(exact))); }
double unit(In v, int k) { return static_cast<double>(no_denormal(float_in(v, k))); } // what the transcendental unit sees
// The exponent e with 0.5 <= |x| / 2^e < 1.
template <class T> int exponent_of(T x) {
  if (x == 0 || !std::isfinite(x)) return 0;
  int e = 0;
  for (T m = std::fabs(x); m >= 1; m /= 2) ++e;
  for (T m = std::fabs(x); m < T(0.5); m *= 2) --e;
  return e;
}
int limited(u32 e) { return std::clamp(static_cast<int>(e), -9000, 9000); }

constexpr VectorCase singles[] = {
    {"v_add_f32 @, v1, v2", [](In v) -> u64 { return as_bits(to_single(sum(d(v, 1), d(v, 2)), nearest)); }, Compare::f32},
    {"v_sub_f32 @, v1, v2", [](In v) -> u64 { return as_bits(to_single(sum(d(v, 1), -d(v, 2)), nearest)); }, Compare::f32},
    {"v_subrev_f32 @, v1, v2", [](In v) -> u64 { return as_bits(to_single(sum(d(v, 2), -d(v, 1)), nearest)); }, Compare::f32},
    {"v_mul_f32 @, v1, v2", [](In v) -> u64 { return single(d(v, 1) * d(v, 2)); }, Compare::f32},
    {"v_mul_legacy_f32 @, v1, v2", [](In v) -> u64 { return d(v, 1) == 0 || d(v, 2) == 0 ? 0 : single(d(v, 1) * d(v, 2)); }, Compare::f32},
    {"v_mul_f32_e64 @, -v1, |v2|", [](In v) -> u64 { return single(-d(v, 1) * std::fabs(d(v, 2))); }, Compare::f32},
    {"v_fma_f32 @, v1, v2, v3", [](In v) -> u64 { return fused(d(v, 1), d(v, 2), d(v, 3)); }, Compare::f32},
    {"v_fma_f32 @, -v1, v2, |v3|", [](In v) -> u64 { return fused(-d(v, 1), d(v, 2), std::fabs(d(v, 3))); }, Compare::f32},
    {"v_fmac_f32 @, v1, v2", [](In v) -> u64 { return fused(d(v, 1), d(v, 2), d(v, 6)); }, Compare::f32},
    {"v_fmamk_f32 @, v1, 0x40490fdb, v2", [](In v) -> u64 { return fused(d(v, 1), 3.1415927410125732, d(v, 2)); }, Compare::f32},
    {"v_fmaak_f32 @, v1, v2, 0xc0490fdb", [](In v) -> u64 { return fused(d(v, 1), d(v, 2), -3.1415927410125732); }, Compare::f32},
    {"v_min_f32 @, v1, v2", [](In v) -> u64 { return lesser(v[1], v[2]); }, Compare::f32},
    {"v_max_f32 @, v1, v2", [](In v) -> u64 { return greater(v[1], v[2]); }, Compare::f32},
    {"v_min3_f32 @, v1, v2, v3", [](In v) -> u64 { return lesser(lesser(v[1], v[2]), v[3]); }, Compare::f32},
    {"v_max3_f32 @, v1, v2, v3", [](In v) -> u64 { return greater(greater(v[1], v[2]), v[3]); }, Compare::f32},
    {"v_floor_f32 @, v1", [](In v) -> u64 { return single(std::floor(d(v, 1))); }, Compare::f32},
    {"v_ceil_f32 @, v1", [](In v) -> u64 { return single(std::ceil(d(v, 1))); }, Compare::f32},
    {"v_trunc_f32 @, v1", [](In v) -> u64 { return single(std::trunc(d(v, 1))); }, Compare::f32},
    {"v_rndne_f32 @, v1",
     [](In v) -> u64 { return single(std::isfinite(d(v, 1)) ? std::copysign(d(v, 1) - std::remainder(d(v, 1), 1.0), d(v, 1)) : d(v, 1)); },
     Compare::f32},
    {"v_fract_f32 @, v1",
     [](In v) -> u64 {
       return std::isinf(d(v, 1)) ? 0x7fc00000U : as_bits(std::min(static_cast<float>(d(v, 1) - std::floor(d(v, 1))), 0x1.fffffep-1F));
     },
     Compare::f32},
    {"v_frexp_exp_i32_f32 @, v1", [](In v) -> u64 { return static_cast<u32>(exponent_of(d(v, 1))); }},
    {"v_frexp_mant_f32 @, v1",
     [](In v) -> u64 { return single(std::isfinite(d(v, 1)) ? d(v, 1) * std::exp2(-exponent_of(d(v, 1))) : d(v, 1)); }, Compare::f32},
    {"v_ldexp_f32 @, v1, v2",
     [](In v) -> u64 { return as_bits(static_cast<float>(ldexpl(static_cast<long double>(d(v, 1)), limited(v[2])))); }, Compare::f32},
    {"v_rcp_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(1 / unit(v, 1)); }, Compare::f32_ulp},
    {"v_rcp_iflag_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(1 / unit(v, 1)); }, Compare::f32_ulp},
    {"v_rsq_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(1 / std::sqrt(unit(v, 1))); }, Compare::f32_ulp},
    {"v_sqrt_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(std::sqrt(unit(v, 1))); }, Compare::f32_ulp},
    {"v_exp_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(std::exp2(unit(v, 1))); }, Compare::f32_ulp},
    {"v_log_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(std::log2(unit(v, 1))); }, Compare::f32_ulp},
    {"v_exp_legacy_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(std::exp2(unit(v, 1))); }, Compare::f32_ulp},
    {"v_log_legacy_f32 @, v1\n s_nop 0", [](In v) -> u64 { return one_step(std::log2(unit(v, 1))); }, Compare::f32_ulp},
    {"v_pk_add_f32 @@, v[2:3], v[4:5]", [](In v) -> u64 { return pair(single(d(v, 2) + d(v, 4)), single(d(v, 3) + d(v, 5))); },
     Compare::two_f32},
    {"v_pk_mul_f32 @@, v[2:3], v[4:5]", [](In v) -> u64 { return pair(single(d(v, 2) * d(v, 4)), single(d(v, 3) * d(v, 5))); },
     Compare::two_f32},
    {"v_pk_mul_f32 @@, v[2:3], v[4:5] op_sel:[0,1] op_sel_hi:[0,1] neg_lo:[1,0]",
     [](In v) -> u64 { return pair(single(-d(v, 2) * d(v, 5)), single(d(v, 2) * d(v, 5))); }, Compare::two_f32},
    {"v_pk_fma_f32 @@, v[2:3], v[4:5], v[2:3]",
     [](In v) -> u64 { return pair(fused(d(v, 2), d(v, 4), d(v, 2)), fused(d(v, 3), d(v, 5), d(v, 3))); }, Compare::two_f32},
    {"v_fma_mix_f32 @, v1, v2, v3", [](In v) -> u64 { return fused(d(v, 1), d(v, 2), d(v, 3)); }, Compare::f32},
    {"v_fma_mix_f32 @, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]",
     [](In v) -> u64 { return fused(half_value(v[1] & 0xffffU), half_value(v[2] >> 16), d(v, 3)); }, Compare::f32},
    {"v_div_scale_f32 v10, s[50:51], v2, v2, v1\n v_div_scale_f32 v11, vcc, v1, v2, v1\n v_rcp_f32 v12, v10\n s_nop 0\n v_fma_f32 v13, "
     "-v10, v12, 1.0\n v_fma_f32 v12, v13, v12, v12\n"
     "v_mul_f32 v13, v11, v12\n v_fma_f32 v14, -v10, v13, v11\n v_fma_f32 v13, v14, v12, v13\n v_fma_f32 v10, -v10, v13, v11\n "
     "v_div_fmas_f32 v10, v10, v12, v13\n v_div_fixup_f32 @, v10, v2, v1",
     [](In v) -> u64 { return as_bits(static_cast<float>(static_cast<long double>(d(v, 1)) / d(v, 2))); }, Compare::f32},
    {"v_cubeid_f32 @, v1, v2, v3",
     [](In v) -> u64 {
       const std::array<double, 3> a{std::fabs(d(v, 1)), std::fabs(d(v, 2)), std::fabs(d(v, 3))};
       const int axis = a[2] >= a[0] && a[2] >= a[1] ? 2 : a[1] >= a[0] ? 1 : 0;
       return single(2 * axis + (d(v, axis + 1) < 0 ? 1 : 0));
     },
     Compare::f32},
    {"v_cubesc_f32 @, v1, v2, v3",
     [](In v) -> u64 {
       const double x = d(v, 1), y = d(v, 2), z = d(v, 3);
       const bool on_z = std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y), on_y = std::fabs(y) >= std::fabs(x);
       return single(on_z ? (z < 0 ? -x : x) : on_y ? x : x < 0 ? z : -z);
     },
     Compare::f32},
    {"v_cubetc_f32 @, v1, v2, v3",
     [](In v) -> u64 {
       const double x = d(v, 1), y = d(v, 2), z = d(v, 3);
       const bool on_z = std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y), on_y = std::fabs(y) >= std::fabs(x);
       return single(!on_z && on_y ? (y < 0 ? -z : z) : -y);
     },
     Compare::f32},
    {"v_mov_b32 v10, v1\n v_mov_b32 v11, v2\n v_swap_b32 v10, v11\n v_sub_f32 @, v10, v11",
     [](In v) -> u64 { return single(d(v, 2) - d(v, 1)); }, Compare::f32},
    {"v_cubema_f32 @, v1, v2, v3",
     [](In v) -> u64 {
       const std::array<double, 3> a{std::fabs(d(v, 1)), std::fabs(d(v, 2)), std::fabs(d(v, 3))};
       return single(2 * d(v, 1 + (a[2] >= a[0] && a[2] >= a[1] ? 2 : a[1] >= a[0] ? 1 : 0)));
     },
     Compare::f32},
};

// Products of bf16 pairs, to be added to c.
u64 bfloat_dot(In v, int c) {
  const auto value = [&](int k, int shift) { return static_cast<double>(as_float(v[k] >> shift << 16)); };
  return single(static_cast<double>(static_cast<float>(value(1, 16) * value(2, 16) + (c == 0 ? 0.0 : d(v, c)))) +
                value(1, 0) * value(2, 0));
}
constexpr VectorCase newer_singles[] = {
    {"v_dot2_f32_bf16 @, v1, v2, 0", [](In v) -> u64 { return bfloat_dot(v, 0); }, Compare::f32_ulp},
    {"v_mov_b32 @, 0\n v_dot2c_f32_bf16 @, v1, v2", [](In v) -> u64 { return bfloat_dot(v, 0); }, Compare::f32_ulp},
    {"v_minimum3_f32 @, v1, v2, v3", [](In v) -> u64 { return strict_lesser(strict_lesser(v[1], v[2]), v[3]); }, Compare::f32},
    {"v_maximum3_f32 @, v1, v2, v3", [](In v) -> u64 { return strict_greater(strict_greater(v[1], v[2]), v[3]); }, Compare::f32},
};

// f64: operands in v[2:3] and v[4:5], whose high words are interesting floats' bits and so are doubles of all kinds.
u64 bits(double x) { return as_bits(x); }
double wide(In v, int k) { return double_in(v, k); }
// With MODE.IEEE a signalling NaN comes out quiet.
bool signalling_wide(double x) { return std::isnan(x) && (bits(x) & 0x0008000000000000U) == 0; }
constexpr VectorCase doubles[] = {
    {"v_add_f64 @@, v[2:3], v[4:5]", [](In v) -> u64 { return bits(to_double(sum(wide(v, 2), wide(v, 4)), nearest)); }, Compare::f64},
    {"v_mul_f64 @@, v[2:3], v[4:5]", [](In v) -> u64 { return bits(wide(v, 2) * wide(v, 4)); }, Compare::f64},
    {"v_min_f64 @@, v[2:3], v[4:5]",
     [](In v) -> u64 {
       const double a = wide(v, 2), b = wide(v, 4);
       if (signalling_wide(a) || signalling_wide(b)) return bits(static_cast<double>(NAN));
       return bits(std::isnan(a) ? b : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b);
     },
     Compare::f64},
    {"v_max_f64 @@, v[2:3], v[4:5]",
     [](In v) -> u64 {
       const double a = wide(v, 2), b = wide(v, 4);
       if (signalling_wide(a) || signalling_wide(b)) return bits(static_cast<double>(NAN));
       return bits(std::isnan(a) ? b : std::isnan(b) ? a : a > b || (a == b && !std::signbit(a)) ? a : b);
     },
     Compare::f64},
    {"v_floor_f64 @@, v[2:3]", [](In v) -> u64 { return bits(static_cast<double>(floorl(wide(v, 2)))); }, Compare::f64},
    {"v_ceil_f64 @@, v[2:3]", [](In v) -> u64 { return bits(static_cast<double>(ceill(wide(v, 2)))); }, Compare::f64},
    {"v_trunc_f64 @@, v[2:3]", [](In v) -> u64 { return bits(static_cast<double>(truncl(wide(v, 2)))); }, Compare::f64},
    {"v_rndne_f64 @@, v[2:3]", [](In v) -> u64 { return bits(static_cast<double>(rintl(wide(v, 2)))); }, Compare::f64},
    {"v_frexp_exp_i32_f64 @, v[2:3]", [](In v) -> u64 { return static_cast<u32>(exponent_of(wide(v, 2))); }},
    {"v_frexp_mant_f64 @@, v[2:3]",
     [](In v) -> u64 {
       return bits(std::isfinite(wide(v, 2)) ? static_cast<double>(ldexpl(wide(v, 2), -exponent_of(wide(v, 2)))) : wide(v, 2));
     },
     Compare::f64},
    {"v_ldexp_f64 @@, v[2:3], v1", [](In v) -> u64 { return bits(static_cast<double>(ldexpl(wide(v, 2), limited(v[1])))); }, Compare::f64},
    {"v_fma_f64 @@, v[2:3], v[4:5], v[4:5]", [](In v) -> u64 { return bits(std::fma(wide(v, 2), wide(v, 4), wide(v, 4))); }, Compare::f64},
    {"v_fmac_f64 @@, v[2:3], v[4:5]", [](In v) -> u64 { return bits(std::fma(wide(v, 2), wide(v, 4), wide(v, 6))); }, Compare::f64},
    {"v_fract_f64 @@, v[2:3]",
     [](In v) -> u64 {
       const double x = wide(v, 2);
       return bits(std::isinf(x) ? NAN : std::isnan(x) ? x : std::min(x - std::floor(x), 0x1.fffffffffffffp-1));
     },
     Compare::f64},
    {"v_rsq_f64 @@, v[2:3]\n s_nop 0", [](In v) -> u64 { return bits(1 / std::sqrt(wide(v, 2))); }, Compare::f64},
    {"v_div_scale_f64 v[10:11], s[50:51], v[4:5], v[4:5], v[2:3]\n v_rcp_f64 v[12:13], v[10:11]\n s_nop 0\n v_fma_f64 v[14:15], -v[10:11], "
     "v[12:13], 1.0\n v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
     "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n v_div_scale_f64 v[14:15], vcc, "
     "v[2:3], v[4:5], v[2:3]\n v_mul_f64 v[16:17], v[14:15], v[12:13]\n"
     "v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]\n v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]\n v_div_fixup_f64 @@, "
     "v[10:11], v[4:5], v[2:3]",
     [](In v) -> u64 { return bits(wide(v, 2) / wide(v, 4)); }, Compare::f64_quotient},
    {"v_rcp_f64 @@, v[2:3]\n s_nop 0", [](In v) -> u64 { return bits(1 / wide(v, 2)); }, Compare::f64},
    {"v_sqrt_f64 @@, v[2:3]\n s_nop 0", [](In v) -> u64 { return bits(std::sqrt(wide(v, 2))); }, Compare::f64},
    {"v_cmp_class_f64 vcc, v[2:3], v1\n s_nop 4\n v_cndmask_b32 @, 0, 1, vcc",
     [](In v) -> u64 {
       const double x = wide(v, 2);
       const bool quiet = (v[3] >> 19 & 1) != 0, negative = std::signbit(x);
       const u32 kind = std::isnan(x)      ? (quiet ? 1 : 0)
                        : std::isinf(x)    ? (negative ? 2 : 9)
                        : x == 0           ? (negative ? 5 : 6)
                        : std::isnormal(x) ? (negative ? 3 : 8)
                        : negative         ? 4
                                           : 7;
       return v[1] >> kind & 1;
     }},
};

u64 half(double exact) { return round_half(exact, nearest, false); }
double hv(In v, int k, int shift = 0) { return half_value(v[k] >> shift & 0xffffU); }
u64 beside(u64 h, In v) { return (h & 0xffffU) | (v[6] & 0xffff0000U); }
double odd_sum(double a, double b) { // a rounding to double that a second one to f16 cannot show
  const Exact e = sum(a, b);
  return e.low == 0 || (as_bits(e.high) & 1) != 0 ? e.high : std::nextafter(e.high, e.low > 0 ? INFINITY : -INFINITY);
}
template <class F> u64 both(F f, In v) { return half(f(v, 0)) | half(f(v, 16)) << 16; }
double smaller(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b; }
double larger(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a > b || (a == b && !std::signbit(a)) ? a : b; }
bool signalling_half(In v, int k, int shift) {
  const u32 h = v[k] >> shift & 0xffffU;
  return (h & 0x7c00U) == 0x7c00U && (h & 0x3ffU) != 0 && (h & 0x200U) == 0;
}
// The least of the halves of v[1] and v[2], and of v[3] too.
double least(In v, int shift = 0) {
  return signalling_half(v, 1, shift) || signalling_half(v, 2, shift) ? NAN : smaller(hv(v, 1, shift), hv(v, 2, shift));
}
double most(In v, int shift = 0) {
  return signalling_half(v, 1, shift) || signalling_half(v, 2, shift) ? NAN : larger(hv(v, 1, shift), hv(v, 2, shift));
}
double least3(In v) { return signalling_half(v, 3, 0) ? NAN : smaller(least(v), hv(v, 3)); }
double most3(In v) { return signalling_half(v, 3, 0) ? NAN : larger(most(v), hv(v, 3)); }

// Product and sum are rounded each; there are no denormals.
double no_half_denormal(double x) { return std::fabs(x) < 0x1p-14 ? std::copysign(0.0, x) : x; }
double unfused(double a, double b, double c) {
  const double product = no_half_denormal(half_value(static_cast<u32>(half(no_half_denormal(a) * no_half_denormal(b)))));
  return no_half_denormal(half_value(static_cast<u32>(half(product + no_half_denormal(c)))));
}
double median(double a, double b, double c) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return smaller(smaller(a, b), c);
  return larger(smaller(a, b), smaller(larger(a, b), c));
}
double quotient(In v) {
  const double q = hv(v, 3), a = hv(v, 1), b = hv(v, 2);
  return !std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0
             ? a / b
             : std::copysign(std::fabs(q), std::signbit(a) != std::signbit(b) ? -1.0 : 1.0);
}
double strict(double a, double b, bool least) { return std::isnan(a) || std::isnan(b) ? NAN : least ? smaller(a, b) : larger(a, b); }
constexpr VectorCase newer_halves[] = {
    {"v_pk_minimum3_f16 @, v1, v2, v3",
     [](In v) -> u64 { return both([](In a, int s) { return strict(strict(hv(a, 1, s), hv(a, 2, s), true), hv(a, 3, s), true); }, v); },
     Compare::two_f16},
    {"v_pk_maximum3_f16 @, v1, v2, v3",
     [](In v) -> u64 { return both([](In a, int s) { return strict(strict(hv(a, 1, s), hv(a, 2, s), false), hv(a, 3, s), false); }, v); },
     Compare::two_f16},
};
constexpr VectorCase halves_table[] = {
    {"v_mad_f16 @, v1, v2, v3", [](In v) -> u64 { return beside(half(unfused(hv(v, 1), hv(v, 2), hv(v, 3))), v); }, Compare::f16},
    {"v_mad_legacy_f16 @, v1, v2, v3", [](In v) -> u64 { return half(unfused(hv(v, 1), hv(v, 2), hv(v, 3))); }, Compare::f16},
    {"v_mac_f16 @, v1, v2", [](In v) -> u64 { return half(unfused(hv(v, 1), hv(v, 2), hv(v, 6))); }, Compare::f16},
    {"v_madmk_f16 @, v1, 0x3555, v2", [](In v) -> u64 { return half(unfused(hv(v, 1), half_value(0x3555), hv(v, 2))); }, Compare::f16},
    {"v_madak_f16 @, v1, v2, 0xb555", [](In v) -> u64 { return half(unfused(hv(v, 1), hv(v, 2), half_value(0xb555))); }, Compare::f16},
    {"v_med3_f16 @, v1, v2, v3", [](In v) -> u64 { return beside(half(median(hv(v, 1), hv(v, 2), hv(v, 3)) + 0.0), v); },
     Compare::f16_number},
    {"v_div_fixup_legacy_f16 @, v3, v2, v1", [](In v) -> u64 { return half(quotient(v)); }, Compare::f16},
    {"v_mov_b32 @, 0\n v_dot2c_f32_f16 @, v1, v2",
     [](In v) -> u64 { return single(hv(v, 1) * hv(v, 2) + hv(v, 1, 16) * hv(v, 2, 16) + 0.0); }, Compare::f32_ulp},
    {"v_add_f16 @, v1, v2", [](In v) -> u64 { return half(hv(v, 1) + hv(v, 2)); }, Compare::f16},
    {"v_sub_f16 @, v1, v2", [](In v) -> u64 { return half(hv(v, 1) - hv(v, 2)); }, Compare::f16},
    {"v_subrev_f16 @, v1, v2", [](In v) -> u64 { return half(hv(v, 2) - hv(v, 1)); }, Compare::f16},
    {"v_mul_f16 @, v1, v2", [](In v) -> u64 { return half(hv(v, 1) * hv(v, 2)); }, Compare::f16},
    {"v_min_f16 @, v1, v2", [](In v) -> u64 { return half(least(v)); }, Compare::f16},
    {"v_max_f16 @, v1, v2", [](In v) -> u64 { return half(most(v)); }, Compare::f16},
    {"v_fma_f16 @, v1, v2, v3", [](In v) -> u64 { return beside(half(odd_sum(hv(v, 1) * hv(v, 2), hv(v, 3))), v); }, Compare::f16},
    {"v_fma_f16 @, v1, -v2, v3 op_sel:[1,0,1,0]",
     [](In v) -> u64 { return beside(half(odd_sum(hv(v, 1, 16) * -hv(v, 2), hv(v, 3, 16))), v); }, Compare::f16},
    {"v_fma_legacy_f16 @, v1, v2, v3", [](In v) -> u64 { return half(odd_sum(hv(v, 1) * hv(v, 2), hv(v, 3))); }, Compare::f16},
    {"v_min3_f16 @, v1, v2, v3", [](In v) -> u64 { return beside(half(least3(v)), v); }, Compare::f16},
    {"v_max3_f16 @, v1, v2, v3", [](In v) -> u64 { return beside(half(most3(v)), v); }, Compare::f16},
    {"v_floor_f16 @, v1", [](In v) -> u64 { return half(std::floor(hv(v, 1))); }, Compare::f16},
    {"v_ceil_f16 @, v1", [](In v) -> u64 { return half(std::ceil(hv(v, 1))); }, Compare::f16},
    {"v_trunc_f16 @, v1", [](In v) -> u64 { return half(std::trunc(hv(v, 1))); }, Compare::f16},
    {"v_rndne_f16 @, v1", [](In v) -> u64 { return half(std::rint(hv(v, 1))); }, Compare::f16},
    {"v_fract_f16 @, v1",
     [](In v) -> u64 {
       return std::isinf(hv(v, 1)) ? 0x7e00
                                   : std::min<u64>(half(hv(v, 1) - std::floor(hv(v, 1))), std::isnan(hv(v, 1)) ? 0x7e00U : 0x3bffU);
     },
     Compare::f16},
    {"v_frexp_mant_f16 @, v1",
     [](In v) -> u64 { return half(std::isfinite(hv(v, 1)) ? hv(v, 1) * std::exp2(-exponent_of(hv(v, 1))) : hv(v, 1)); }, Compare::f16},
    {"v_frexp_exp_i16_f16 @, v1", [](In v) -> u64 { return static_cast<u32>(exponent_of(hv(v, 1))) & 0xffffU; }},
    {"v_ldexp_f16 @, v1, v2",
     [](In v) -> u64 { return half(std::ldexp(hv(v, 1), std::clamp<int>(static_cast<std::int16_t>(v[2]), -900, 900))); }, Compare::f16},
    {"v_rcp_f16 @, v1\n s_nop 0", [](In v) -> u64 { return half(1 / hv(v, 1)); }, Compare::f16_ulp},
    {"v_sqrt_f16 @, v1\n s_nop 0", [](In v) -> u64 { return half(std::sqrt(hv(v, 1))); }, Compare::f16_ulp},
    {"v_rsq_f16 @, v1\n s_nop 0", [](In v) -> u64 { return half(1 / std::sqrt(hv(v, 1))); }, Compare::f16_ulp},
    {"v_exp_f16 @, v1\n s_nop 0", [](In v) -> u64 { return half(std::exp2(hv(v, 1))); }, Compare::f16_ulp},
    {"v_log_f16 @, v1\n s_nop 0", [](In v) -> u64 { return half(std::log2(hv(v, 1))); }, Compare::f16_ulp},
    {"v_pack_b32_f16 @, v1, v2", [](In v) -> u64 { return (v[1] & 0xffffU) | v[2] << 16; }, Compare::two_f16},
    {"v_pk_add_f16 @, v1, v2", [](In v) -> u64 { return both([](In a, int s) { return hv(a, 1, s) + hv(a, 2, s); }, v); },
     Compare::two_f16},
    {"v_pk_mul_f16 @, v1, v2", [](In v) -> u64 { return both([](In a, int s) { return hv(a, 1, s) * hv(a, 2, s); }, v); },
     Compare::two_f16},
    {"v_pk_min_f16 @, v1, v2", [](In v) -> u64 { return both([](In a, int s) { return least(a, s); }, v); }, Compare::two_f16},
    {"v_pk_max_f16 @, v1, v2", [](In v) -> u64 { return both([](In a, int s) { return most(a, s); }, v); }, Compare::two_f16},
    {"v_pk_fma_f16 @, v1, v2, v3",
     [](In v) -> u64 { return both([](In a, int s) { return odd_sum(hv(a, 1, s) * hv(a, 2, s), hv(a, 3, s)); }, v); }, Compare::two_f16},
    {"v_pk_fma_f16 @, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_hi:[0,1,0]",
     [](In v) -> u64 {
       return both([](In a, int s) { return odd_sum(hv(a, 1, 16 - s) * (s != 0 ? -hv(a, 2, s) : hv(a, 2, s)), hv(a, 3, s)); }, v);
     },
     Compare::two_f16},
    {"v_pk_fmac_f16 @, v1, v2",
     [](In v) -> u64 { return both([](In a, int s) { return odd_sum(hv(a, 1, s) * hv(a, 2, s), hv(a, 6, s)); }, v); }, Compare::two_f16},
    {"v_fma_mixlo_f16 @, v1, v2, v3 op_sel_hi:[1,1,1]",
     [](In v) -> u64 { return beside(half(static_cast<double>(static_cast<float>(odd_sum(hv(v, 1) * hv(v, 2), hv(v, 3))))), v); },
     Compare::f16},
    {"v_fma_mixhi_f16 @, v1, v2, v3 op_sel_hi:[1,1,1]",
     [](In v) -> u64 {
       return (v[6] & 0xffffU) | half(static_cast<double>(static_cast<float>(odd_sum(hv(v, 1) * hv(v, 2), hv(v, 3))))) << 16;
     },
     Compare::two_f16},
    {"v_dot2_f32_f16 @, v1, v2, 0", [](In v) -> u64 { return single(hv(v, 1) * hv(v, 2) + hv(v, 1, 16) * hv(v, 2, 16) + 0.0); },
     Compare::f32_ulp},
    {"v_div_fixup_f16 @, v3, v2, v1", [](In v) -> u64 { return beside(half(quotient(v)), v); }, Compare::f16},
};

} // namespace

TEST_CASE("f32 instructions over all pairs of edge values") {
  const auto sets = pairs_of(interesting_floats(), 6, 21);
  int cases = check_vector(newer_singles, sets, "gfx950");
  for (const char* arch : {"gfx942", "gfx950"}) cases += check_vector(singles, sets, arch);
  MESSAGE(fmt::format("{} cases of f32 instructions", cases));
}

TEST_CASE("f64 instructions over edge values") {
  // Words of doubles: high words of zeros, infinities, NaN, denormals, numbers of all sizes; low words 0, 1, all ones.
  const std::vector<u32> words = {0x00000000, 0x80000000, 0x3ff00000, 0xbff00000, 0x7ff00000, 0xfff00000,
                                  0x7ff80000, 0x7fefffff, 0x00100000, 0x000fffff, 0x40240000, 0xc0590000,
                                  0x3fe00000, 0x43400000, 0x00000001, 0xffffffff, 0x3fdfffff, 0x40080000};
  MESSAGE(fmt::format("{} cases of f64 instructions",
                      check_vector(doubles, pairs_of(words, 6, 22)) + check_vector(doubles, pairs_of(words, 2, 23), "gfx950")));
}

TEST_CASE("f16 instructions, alone and packed, over all pairs of edge values") {
  const auto sets = pairs_of(interesting_halves(), 6, 24);
  MESSAGE(fmt::format("{} cases of f16 instructions", check_vector(halves_table, sets) + check_vector(halves_table, sets, "gfx950") +
                                                          check_vector(newer_halves, sets, "gfx950")));
}

TEST_CASE("v_trig_preop_f64 gives the bits of 2 / pi, 53 at a time") {
  const LaneResult r = run({.body = "v_mov_b32 v10, 0\n v_mov_b32 v11, 1.0\n v_trig_preop_f64 v[64:65], v[10:11], 0\n v_trig_preop_f64 "
                                    "v[66:67], v[10:11], 1\n v_trig_preop_f64 v[68:69], v[10:11], 2\n"
                                    "v_mov_b32 v11, 0x44b00000\n v_trig_preop_f64 v[70:71], v[10:11], 0",
                            .results = 8});
  REQUIRE(r.run.defects.empty());
  const auto piece = [&](std::size_t k) { return as_double(r.v[2 * k][0] | u64{r.v[2 * k + 1][0]} << 32); };
  const long double sum = static_cast<long double>(piece(0)) + piece(1) + piece(2), want = 2 / 3.14159265358979323846264338327950288L;
  CHECK(std::fabs(sum - want) <= std::ldexp(1.0L, -63));
  CHECK(piece(0) < 2 / 3.14159265358979);
  CHECK(piece(1) < std::ldexp(1.0, -52));
  // 2^76 has exponent 1099: 22 bits further. What is left of the first piece are its low 31 bits, followed by 22 of the second.
  CHECK(std::fabs(std::fmod(piece(0), std::ldexp(1.0, -22)) - piece(3)) <= std::ldexp(1.0, -53));
}

TEST_CASE("v_sin_f32 and v_cos_f32 take revolutions") {
  for (int turn = 0; turn < 8; ++turn) {
    const Lanes64 x = floats([=](int i) { return static_cast<float>(turn * 64 + i) * 0.37F - 90.0F; });
    const LaneResult r = run({.body = "v_sin_f32 v64, v1\n v_cos_f32 v65, v1\n v_sin_f16 v66, v2\n v_cos_f16 v67, v2\n s_nop 1",
                              .inputs = {x, each_lane([&](int i) { return to_half(as_float(x[static_cast<std::size_t>(i)]) / 64).bits; })},
                              .results = 4});
    for (std::size_t i = 0; i < 64; ++i) {
      const double angle = 2 * 3.14159265358979323846 * static_cast<double>(as_float(x[i])),
                   small = 2 * 3.14159265358979323846 * half_value(to_half(as_float(x[i]) / 64).bits);
      CHECK(std::fabs(static_cast<double>(as_float(r.v[0][i])) - std::sin(angle)) < 2e-7);
      CHECK(std::fabs(static_cast<double>(as_float(r.v[1][i])) - std::cos(angle)) < 2e-7);
      CHECK(std::fabs(half_value(r.v[2][i]) - std::sin(small)) < 1e-3);
      CHECK(std::fabs(half_value(r.v[3][i]) - std::cos(small)) < 1e-3);
    }
  }
}

} // namespace float_test
