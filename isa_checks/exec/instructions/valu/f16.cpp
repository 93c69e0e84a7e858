// Half-precision vector instructions, plain and packed. A sum or product of halves is exact enough in float that rounding
// twice cannot differ from rounding once; a fused multiply-add of halves is done in double.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/mode.h"
#include "isa_checks/exec/numbers/float_ops.h"
#include <numbers>

namespace kiln::exec {
namespace {

Half fma_half(Half a, Half b, Half c) {
  const double exact = static_cast<double>(to_float(a)) * static_cast<double>(to_float(b)) + static_cast<double>(to_float(c));
  // To float with the inexact rest kept in the last bit (round to odd), so that the second rounding sees it.
  float rounded = static_cast<float>(exact);
  const double rest = exact - static_cast<double>(rounded);
  if (rest != 0 && std::isfinite(rounded) && (as_bits(rounded) & 1U) == 0) {
    const bool away = (rest > 0) == (rounded > 0) || rounded == 0;
    rounded = as_float(as_bits(rounded) + (away ? 1U : ~0U));
  }
  return to_half(rounded);
}

template <auto F> Half one(Half a) { return to_half(F(to_float(a))); }
template <auto F> Half two(Half a, Half b) { return to_half(F(to_float(a), to_float(b))); }
template <auto F> Half three(Half a, Half b, Half c) { return to_half(F(to_float(a), to_float(b), to_float(c))); }
template <auto F> HalfPair each(HalfPair a, HalfPair b) { return {two<F>(a.lo, b.lo), two<F>(a.hi, b.hi)}; }
template <auto F> HalfPair each3(HalfPair a, HalfPair b, HalfPair c) { return {three<F>(a.lo, b.lo, c.lo), three<F>(a.hi, b.hi, c.hi)}; }

constexpr auto add = [](auto a, auto b) { return a + b; };
constexpr auto sub = [](auto a, auto b) { return a - b; };
constexpr auto mul = [](auto a, auto b) { return a * b; };
constexpr auto low = [](auto a, auto b) { return min_number(a, b); };
constexpr auto high = [](auto a, auto b) { return max_number(a, b); };
constexpr auto med3 = [](auto a, auto b, auto c) { return median(a, b, c); };
constexpr auto minimum3 = [](auto a, auto b, auto c) { return minimum(minimum(a, b), c); };
constexpr auto maximum3 = [](auto a, auto b, auto c) { return maximum(maximum(a, b), c); };

HalfPair packed_fma(HalfPair a, HalfPair b, HalfPair c) { return {fma_half(a.lo, b.lo, c.lo), fma_half(a.hi, b.hi, c.hi)}; }

// The same in any mode: in double, where sums and products of halves are exact.
double value(const Wave& wave, Half h) { return static_cast<double>(to_float(mode::source(wave.mode, h))); }
template <auto F> Half one_in_mode(const Wave& wave, Half a) { return mode::to_half(wave.mode, F(value(wave, a))); }
template <auto F> Half two_in_mode(const Wave& wave, Half a, Half b) { return mode::to_half(wave.mode, F(value(wave, a), value(wave, b))); }
template <auto F> Half three_in_mode(const Wave& wave, Half a, Half b, Half c) {
  return mode::to_half(wave.mode, F(value(wave, a), value(wave, b), value(wave, c)));
}
template <auto F> HalfPair each_in_mode(const Wave& wave, HalfPair a, HalfPair b) {
  return {two_in_mode<F>(wave, a.lo, b.lo), two_in_mode<F>(wave, a.hi, b.hi)};
}
template <auto F> HalfPair each3_in_mode(const Wave& wave, HalfPair a, HalfPair b, HalfPair c) {
  return {three_in_mode<F>(wave, a.lo, b.lo, c.lo), three_in_mode<F>(wave, a.hi, b.hi, c.hi)};
}
// Minima and maxima, with a signalling NaN quiet where MODE.IEEE is set.
template <auto F> Half quieting_two(Half a, Half b) { return quieting(a, b, two<F>); }
template <auto F> Half quieting_three(Half a, Half b, Half c) { return quieting_two<F>(quieting_two<F>(a, b), c); }
template <auto F> HalfPair quieting_each(HalfPair a, HalfPair b) { return {quieting_two<F>(a.lo, b.lo), quieting_two<F>(a.hi, b.hi)}; }
template <auto F> Half quieting_in_mode(const Wave& wave, Half a, Half b) {
  const auto f = [&](Half x, Half y) { return two_in_mode<F>(wave, x, y); };
  return (wave.mode & mode::ieee) != 0 ? quieting(a, b, f) : f(a, b);
}
template <auto F> Half quieting_three_in_mode(const Wave& wave, Half a, Half b, Half c) {
  return quieting_in_mode<F>(wave, quieting_in_mode<F>(wave, a, b), c);
}
template <auto F> HalfPair quieting_each_in_mode(const Wave& wave, HalfPair a, HalfPair b) {
  return {quieting_in_mode<F>(wave, a.lo, b.lo), quieting_in_mode<F>(wave, a.hi, b.hi)};
}
// Directed roundings may be done twice in the same direction (the host rounds to double as MODE says); to nearest only once.
Half fma_in_mode(const Wave& wave, Half a, Half b, Half c) {
  const double x = value(wave, a), y = value(wave, b), z = value(wave, c);
  if (mode::wide_rounding(wave.mode) != Rounding::nearest_even) return mode::to_half(wave.mode, x * y + z);
  const Half h = fma_half(mode::source(wave.mode, a), mode::source(wave.mode, b), mode::source(wave.mode, c));
  return std::isinf(to_float(h)) ? mode::to_half(wave.mode, x * y + z) : mode::result(wave.mode, h);
}
HalfPair packed_fma_in_mode(const Wave& wave, HalfPair a, HalfPair b, HalfPair c) {
  return {fma_in_mode(wave, a.lo, b.lo, c.lo), fma_in_mode(wave, a.hi, b.hi, c.hi)};
}
Half scale_in_mode(const Wave& wave, Half a, std::int16_t e) { return mode::to_half(wave.mode, load_exponent(value(wave, a), e)); }

Half div_fixup(Half q, Half d, Half n) {
  const float quotient = to_float(q), denominator = to_float(d), numerator = to_float(n);
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const auto signed_value = [&](float magnitude) { return to_half(negative ? -magnitude : magnitude); };
  if (numerator != numerator) return n;
  if (denominator != denominator) return d;
  if ((numerator == 0 && denominator == 0) || (std::isinf(numerator) && std::isinf(denominator))) return {0xfe00U};
  if (denominator == 0 || std::isinf(numerator)) return signed_value(std::numeric_limits<float>::infinity());
  if (std::isinf(denominator) || numerator == 0) return signed_value(0.0F);
  return signed_value(std::fabs(quotient));
}

float turn(float x) { return 2 * std::numbers::pi_v<float> * (x - std::floor(x)); }

constexpr Semantics table[] = {
    arithmetic<two<add>, two_in_mode<add>>("v_add_f16"),
    arithmetic<two<sub>, two_in_mode<sub>>("v_sub_f16"),
    arithmetic<[](Half a, Half b) { return two<sub>(b, a); }, [](const Wave& w, Half a, Half b) { return two_in_mode<sub>(w, b, a); }>(
        "v_subrev_f16"),
    arithmetic<two<mul>, two_in_mode<mul>>("v_mul_f16"),
    extreme<quieting_two<low>, quieting_in_mode<low>>("v_min_f16"),
    extreme<quieting_two<high>, quieting_in_mode<high>>("v_max_f16"),
    half_kept(arithmetic<fma_half, fma_in_mode>("v_fma_f16")),
    half_kept(extreme<quieting_three<low>, quieting_three_in_mode<low>>("v_min3_f16")),
    half_kept(extreme<quieting_three<high>, quieting_three_in_mode<high>>("v_max3_f16")),
    half_kept(arithmetic<three<med3>, three_in_mode<med3>>("v_med3_f16")),
    keeping_half<div_fixup>("v_div_fixup_f16"),
    lanes<div_fixup>("v_div_fixup_legacy_f16"),
    arithmetic<fma_half, fma_in_mode>("v_fma_legacy_f16"),
    arithmetic<[](Half a, std::int16_t e) { return to_half(load_exponent(to_float(a), e)); }, scale_in_mode>("v_ldexp_f16"),
    exact<one<[](float x) { return std::floor(x); }>>("v_floor_f16"),
    exact<one<[](float x) { return std::ceil(x); }>>("v_ceil_f16"),
    exact<one<[](float x) { return std::trunc(x); }>>("v_trunc_f16"),
    exact<one<[](float x) { return round_even(x); }>>("v_rndne_f16"),
    exact<one<[](float x) { return fraction(x, 0.99951171875F); }>>("v_fract_f16"),
    exact<one<[](float x) { return frexp_mantissa(x); }>>("v_frexp_mant_f16"),
    exact<[](Half x) { return static_cast<std::int16_t>(frexp_exponent(to_float(x))); }>("v_frexp_exp_i16_f16"),
    lanes<one<[](float x) { return 1.0F / x; }>>("v_rcp_f16"),
    lanes<one<[](float x) { return std::sqrt(x); }>>("v_sqrt_f16"),
    lanes<one<[](float x) { return 1.0F / std::sqrt(x); }>>("v_rsq_f16"),
    lanes<one<[](float x) { return std::exp2(x); }>>("v_exp_f16"),
    lanes<one<[](float x) { return std::log2(x); }>>("v_log_f16"),
    lanes<one<[](float x) { return std::sin(turn(x)); }>>("v_sin_f16"),
    lanes<one<[](float x) { return std::cos(turn(x)); }>>("v_cos_f16"),
    lanes<[](Half a, Half b) { return Pair16{a.bits, b.bits}; }>("v_pack_b32_f16"),
    arithmetic<each<add>, each_in_mode<add>>("v_pk_add_f16"),
    arithmetic<each<mul>, each_in_mode<mul>>("v_pk_mul_f16"),
    extreme<quieting_each<low>, quieting_each_in_mode<low>>("v_pk_min_f16"),
    extreme<quieting_each<high>, quieting_each_in_mode<high>>("v_pk_max_f16"),
    arithmetic<packed_fma, packed_fma_in_mode>("v_pk_fma_f16"),
    accumulating_arithmetic<packed_fma, packed_fma_in_mode>("v_pk_fmac_f16"),
    arithmetic<each3<minimum3>, each3_in_mode<minimum3>>("v_pk_minimum3_f16"),
    arithmetic<each3<maximum3>, each3_in_mode<maximum3>>("v_pk_maximum3_f16"),
};

} // namespace

SemanticsTable f16_table() { return table; }

} // namespace kiln::exec
