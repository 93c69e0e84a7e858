// Double-precision vector instructions.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/lanes.h"
#include "isa_checks/exec/machine/mode.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

double div_fixup(double quotient, double denominator, double numerator) {
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const auto signed_value = [&](double magnitude) { return negative ? -magnitude : magnitude; };
  if (numerator != numerator) return numerator;
  if (denominator != denominator) return denominator;
  if ((numerator == 0 && denominator == 0) || (std::isinf(numerator) && std::isinf(denominator)))
    return std::numeric_limits<double>::quiet_NaN();
  if (denominator == 0 || std::isinf(numerator)) return signed_value(std::numeric_limits<double>::infinity());
  if (std::isinf(denominator) || numerator == 0) return signed_value(0.0);
  // Beyond the largest number; the steps before may have made a NaN of it.
  const int difference = static_cast<int>(as_bits(numerator) >> 52 & 0x7ffU) - static_cast<int>(as_bits(denominator) >> 52 & 0x7ffU);
  if (difference > 1024) return signed_value(std::numeric_limits<double>::infinity());
  return signed_value(std::fabs(quotient));
}

WithCarry<double> div_scale(double s0, double denominator, double numerator) {
  const auto exponent = [](double x) { return static_cast<int>(as_bits(x) >> 52 & 0x7ffU); };
  if (denominator == 0 || numerator == 0) return {std::numeric_limits<double>::quiet_NaN(), false};
  const double inverse = 1.0 / denominator, quotient = numerator / denominator;
  const bool is_denominator = as_bits(s0) == as_bits(denominator), is_numerator = as_bits(s0) == as_bits(numerator);
  if (exponent(numerator) - exponent(denominator) >= 768) return {is_denominator ? std::ldexp(s0, 128) : s0, true};
  if (exponent(denominator) == 0) return {std::ldexp(s0, 128), false};
  const bool small_inverse = std::fpclassify(inverse) == FP_SUBNORMAL;
  const bool small_quotient = std::fpclassify(quotient) == FP_SUBNORMAL || quotient == 0;
  if (small_inverse && small_quotient) return {is_denominator ? std::ldexp(s0, -128) : s0, true};
  if (small_inverse) return {std::ldexp(s0, -128), false};
  if (small_quotient) return {is_numerator ? std::ldexp(s0, 128) : s0, true};
  if (exponent(numerator) <= 53) return {std::ldexp(s0, 128), false};
  return {s0, false};
}

// Minima and maxima, after the manual's pseudo-code: of three they are two of two.
template <auto F> double quieting_two(double a, double b) { return quieting(a, b, F); }
template <auto F> double two_in_mode(const Wave& wave, double a, double b) {
  const double x = mode::source(wave.mode, a), y = mode::source(wave.mode, b);
  return mode::result(wave.mode, (wave.mode & mode::ieee) != 0 ? quieting(x, y, F) : F(x, y));
}

constexpr Semantics table[] = {
    arithmetic<[](double a, double b) { return a + b; }>("v_add_f64"),
    arithmetic<[](double a, double b) { return a * b; }>("v_mul_f64"),
    extreme<quieting_two<min_number<double>>, two_in_mode<min_number<double>>>("v_min_f64"),
    extreme<quieting_two<max_number<double>>, two_in_mode<max_number<double>>>("v_max_f64"),
    arithmetic<[](double a, double b, double c) { return std::fma(a, b, c); }>("v_fma_f64"),
    accumulating_arithmetic<[](double a, double b, double c) { return std::fma(a, b, c); }>("v_fmac_f64"),
    exact<[](double x) { return std::floor(x); }>("v_floor_f64"),
    exact<[](double x) { return std::ceil(x); }>("v_ceil_f64"),
    exact<[](double x) { return std::trunc(x); }>("v_trunc_f64"),
    exact<[](double x) { return round_even(x); }>("v_rndne_f64"),
    arithmetic<[](double x) { return fraction(x, as_double(0x3fefffffffffffffULL)); }>("v_fract_f64"),
    exact<[](double x) { return frexp_exponent(x); }>("v_frexp_exp_i32_f64"),
    exact<[](double x) { return frexp_mantissa(x); }>("v_frexp_mant_f64"),
    arithmetic<[](double x, i32 e) { return load_exponent(x, e); }>("v_ldexp_f64"),
    lanes<[](double x) { return 1.0 / x; }>("v_rcp_f64"),
    lanes<[](double x) { return 1.0 / std::sqrt(x); }>("v_rsq_f64"),
    lanes<[](double x) { return std::sqrt(x); }>("v_sqrt_f64"),
    lanes<div_scale>("v_div_scale_f64"),
    arithmetic<[](double a, double b, double c, bool vcc) {
      const double r = std::fma(a, b, c);
      return vcc ? std::ldexp(r, (as_bits(c) >> 52 & 0x7ffU) > 1023 ? 128 : -128) : r;
    }>("v_div_fmas_f64"),
    lanes<div_fixup>("v_div_fixup_f64"),
};

} // namespace

SemanticsTable f64_table() { return table; }

} // namespace kiln::exec
