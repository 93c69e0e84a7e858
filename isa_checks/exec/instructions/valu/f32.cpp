// Single-precision vector instructions.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/mode.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/numbers/float_ops.h"
#include <numbers>

namespace kiln::exec {
namespace {

// The transcendental unit flushes denormal inputs and results. Its exact results are not public (documented: within 1 ulp);
// the model returns the correctly rounded value, or the host library's where that is not available.
float reciprocal(float x) { return flush(1.0F / flush(x)); }
float square_root(float x) { return std::sqrt(flush(x)); }
float reciprocal_root(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(flush(x)))); }
float exponential(float x) { return flush(std::exp2(flush(x))); }
float logarithm(float x) { return std::log2(flush(x)); }
// Angles are in revolutions; beyond +-256 the hardware's range, results are sin 0 and cos 0.
float sine(float x) {
  if (std::fabs(x) > 256) return std::isfinite(x) ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::sin(2 * std::numbers::pi * (static_cast<double>(x) - std::floor(static_cast<double>(x)))));
}
float cosine(float x) {
  if (std::fabs(x) > 256) return std::isfinite(x) ? 1.0F : std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::cos(2 * std::numbers::pi * (static_cast<double>(x) - std::floor(static_cast<double>(x)))));
}

float legacy_product(float a, float b) { return a == 0 || b == 0 ? 0.0F : a * b; }

float fma_mix(Mixed a, Mixed b, Mixed c) { return std::fma(a.value, b.value, c.value); }
Half fma_mix_half(Mixed a, Mixed b, Mixed c) { return to_half(fma_mix(a, b, c)); }
// Sources that were halves have lost that here, so their denormals cannot be made zero.
float fma_mix_in_mode(const Wave& wave, Mixed a, Mixed b, Mixed c) {
  if ((wave.mode & 0x40U) == 0) throw Stop("v_fma_mix in a MODE without f16 denormals, which the executor does not model");
  const auto value = [&](Mixed x) { return mode::source(wave.mode, x.value); };
  return mode::result(wave.mode, std::fma(value(a), value(b), value(c)));
}
Half fma_mix_half_in_mode(const Wave& wave, Mixed a, Mixed b, Mixed c) {
  return mode::to_half(wave.mode, static_cast<double>(fma_mix_in_mode(wave, a, b, c)));
}

// Division steps of the IEEE sequence, after the manual's pseudo-code of v_div_scale, v_div_fmas and v_div_fixup. The
// manual tests a reciprocal for being denormal; here a large denominator is scaled down, as the sequence needs it to be exact.
WithCarry<float> div_scale(float s0, float denominator, float numerator) {
  const auto exponent = [](float x) { return static_cast<int>(as_bits(x) >> 23 & 0xffU); };
  float result = s0;
  bool scaled = false;
  if (denominator == 0 || numerator == 0) return {std::numeric_limits<float>::quiet_NaN(), false};
  const int difference = exponent(numerator) - exponent(denominator);
  const bool denormal_denominator = exponent(denominator) == 0;
  const float inverse = 1.0F / denominator, quotient = numerator / denominator;
  if (difference >= 96) {
    scaled = true;
    if (as_bits(s0) == as_bits(denominator)) result = std::ldexp(s0, 64);
  } else if (denormal_denominator) {
    result = std::ldexp(s0, 64);
  } else if (std::fpclassify(inverse) == FP_SUBNORMAL && std::fpclassify(quotient) == FP_SUBNORMAL) {
    scaled = true;
    if (as_bits(s0) == as_bits(denominator)) result = std::ldexp(s0, -64);
  } else if (std::fpclassify(inverse) == FP_SUBNORMAL) {
    result = std::ldexp(s0, -64);
  } else if (std::fpclassify(quotient) == FP_SUBNORMAL || quotient == 0) {
    scaled = true;
    if (as_bits(s0) == as_bits(numerator)) result = std::ldexp(s0, 64);
  } else if (exponent(numerator) <= 23) {
    result = std::ldexp(s0, 64);
  }
  return {result, scaled};
}

// Scaled and rounded once, so that a denormal quotient is not rounded twice.
float div_fmas(float a, float b, float c, bool scaled) {
  if (!scaled) return std::fma(a, b, c);
  const double sum = sum_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c));
  return static_cast<float>(std::ldexp(sum, (as_bits(c) >> 23 & 0xffU) > 127 ? 64 : -64));
}

float div_fixup(float quotient, float denominator, float numerator) {
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const auto signed_value = [&](float magnitude) { return negative ? -magnitude : magnitude; };
  if (numerator != numerator) return as_float(as_bits(numerator) | 0x00400000U);
  if (denominator != denominator) return as_float(as_bits(denominator) | 0x00400000U);
  if ((numerator == 0 && denominator == 0) || (std::isinf(numerator) && std::isinf(denominator))) return as_float(0xffc00000U);
  if (denominator == 0 || std::isinf(numerator)) return signed_value(std::numeric_limits<float>::infinity());
  if (std::isinf(denominator) || numerator == 0) return signed_value(0.0F);
  const int difference = static_cast<int>(as_bits(numerator) >> 23 & 0xffU) - static_cast<int>(as_bits(denominator) >> 23 & 0xffU);
  if (difference < -150) return signed_value(0.0F);
  // Beyond the largest number; the steps before may have made a NaN of it.
  if (difference > 128) return signed_value(std::numeric_limits<float>::infinity());
  return signed_value(std::fabs(quotient));
}

// Minima and maxima, after the manual's pseudo-code: of three they are two of two.
template <auto F> float quieting_two(float a, float b) { return quieting(a, b, F); }
template <auto F> float two_in_mode(const Wave& wave, float a, float b) {
  const float x = mode::source(wave.mode, a), y = mode::source(wave.mode, b);
  return mode::result(wave.mode, (wave.mode & mode::ieee) != 0 ? quieting(x, y, F) : F(x, y));
}
template <auto F> float quieting_three(float a, float b, float c) { return quieting(quieting(a, b, F), c, F); }
template <auto F> float three_in_mode(const Wave& wave, float a, float b, float c) {
  return two_in_mode<F>(wave, two_in_mode<F>(wave, a, b), c);
}

constexpr Semantics table[] = {
    arithmetic<[](float a, float b) { return a + b; }>("v_add_f32"),
    arithmetic<[](float a, float b) { return a - b; }>("v_sub_f32"),
    arithmetic<[](float a, float b) { return b - a; }>("v_subrev_f32"),
    arithmetic<[](float a, float b) { return a * b; }>("v_mul_f32"),
    arithmetic<legacy_product>("v_mul_legacy_f32"),
    extreme<quieting_two<min_number<float>>, two_in_mode<min_number<float>>>("v_min_f32"),
    extreme<quieting_two<max_number<float>>, two_in_mode<max_number<float>>>("v_max_f32"),
    arithmetic<[](float a, float b, float c) { return std::fma(a, b, c); }>("v_fma_f32"),
    accumulating_arithmetic<[](float a, float b, float c) { return std::fma(a, b, c); }>("v_fmac_f32"),
    arithmetic<[](float a, float b, float c) { return std::fma(a, b, c); }>("v_fmamk_f32"),
    arithmetic<[](float a, float b, float c) { return std::fma(a, b, c); }>("v_fmaak_f32"),
    arithmetic<fma_mix, fma_mix_in_mode>("v_fma_mix_f32"),
    half_kept(arithmetic<fma_mix_half, fma_mix_half_in_mode, mode::Rounds::as_single>("v_fma_mixlo_f16")),
    half_kept(arithmetic<fma_mix_half, fma_mix_half_in_mode, mode::Rounds::as_single>("v_fma_mixhi_f16")),
    extreme<quieting_three<min_number<float>>, three_in_mode<min_number<float>>>("v_min3_f32"),
    extreme<quieting_three<max_number<float>>, three_in_mode<max_number<float>>>("v_max3_f32"),
    exact<median<float>>("v_med3_f32"),
    exact<[](float a, float b, float c) { return minimum(minimum(a, b), c); }>("v_minimum3_f32"),
    exact<[](float a, float b, float c) { return maximum(maximum(a, b), c); }>("v_maximum3_f32"),
    exact<[](float x) { return std::floor(x); }>("v_floor_f32"),
    exact<[](float x) { return std::ceil(x); }>("v_ceil_f32"),
    exact<[](float x) { return std::trunc(x); }>("v_trunc_f32"),
    exact<[](float x) { return round_even(x); }>("v_rndne_f32"),
    arithmetic<[](float x) { return fraction(x, as_float(0x3f7fffffU)); }>("v_fract_f32"),
    exact<[](float x) { return frexp_exponent(x); }>("v_frexp_exp_i32_f32"),
    exact<[](float x) { return frexp_mantissa(x); }>("v_frexp_mant_f32"),
    arithmetic<[](float x, i32 e) { return load_exponent(x, e); }>("v_ldexp_f32"),
    lanes<reciprocal>("v_rcp_f32"),
    lanes<reciprocal>("v_rcp_iflag_f32"),
    lanes<reciprocal_root>("v_rsq_f32"),
    lanes<square_root>("v_sqrt_f32"),
    lanes<exponential>("v_exp_f32"),
    lanes<exponential>("v_exp_legacy_f32"),
    lanes<logarithm>("v_log_f32"),
    lanes<logarithm>("v_log_legacy_f32"),
    lanes<sine>("v_sin_f32"),
    lanes<cosine>("v_cos_f32"),
    lanes<div_scale>("v_div_scale_f32"),
    arithmetic<div_fmas>("v_div_fmas_f32"),
    lanes<div_fixup>("v_div_fixup_f32"),
    arithmetic<[](FloatPair a, FloatPair b) { return FloatPair{a.lo + b.lo, a.hi + b.hi}; }>("v_pk_add_f32"),
    arithmetic<[](FloatPair a, FloatPair b) { return FloatPair{a.lo * b.lo, a.hi * b.hi}; }>("v_pk_mul_f32"),
    arithmetic<[](FloatPair a, FloatPair b, FloatPair c) { return FloatPair{std::fma(a.lo, b.lo, c.lo), std::fma(a.hi, b.hi, c.hi)}; }>(
        "v_pk_fma_f32"),
};

} // namespace

SemanticsTable f32_table() { return table; }

} // namespace kiln::exec
