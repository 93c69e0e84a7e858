// Slow, exact conversions to and from small float formats; the fast paths for f16 and bf16 are inline in numeric.h.
#include "isa_checks/exec/numbers/numeric.h"
#include <algorithm>

namespace kiln::exec {
namespace {

// Rounds a non-negative magnitude, exactly representable as a double, to an integer.
double round_magnitude(double value, Rounding rounding, bool negative) {
  const double floor = std::floor(value), rest = value - floor;
  bool up = false;
  switch (rounding) {
  case Rounding::nearest_even: up = rest > 0.5 || (rest == 0.5 && std::fmod(floor, 2.0) == 1.0); break;
  case Rounding::up: up = rest > 0 && !negative; break;
  case Rounding::down: up = rest > 0 && negative; break;
  case Rounding::toward_zero: break;
  }
  return up ? floor + 1 : floor;
}

double largest_value(const SmallFloat& format) { return static_cast<double>(decode_small(format, largest_code(format))); }

std::uint32_t infinity_code(const SmallFloat& format) { return ((1U << format.exponent_bits) - 1) << format.mantissa_bits; }

std::uint32_t overflow_code(const SmallFloat& format, std::uint32_t sign, bool saturate) {
  if (saturate || format.specials == SmallFloat::finite) return sign | largest_code(format);
  if (format.specials == SmallFloat::ieee) return sign | infinity_code(format);
  return format.specials == SmallFloat::fn ? sign | nan_code(format) : nan_code(format);
}

} // namespace

std::uint32_t largest_code(const SmallFloat& format) {
  const std::uint32_t all = (1U << (format.width() - 1)) - 1;
  switch (format.specials) {
  case SmallFloat::ieee: return infinity_code(format) - 1;
  case SmallFloat::fn: return all - 1;
  case SmallFloat::fnuz:
  case SmallFloat::finite: return all;
  }
  return all;
}

std::uint32_t nan_code(const SmallFloat& format) {
  const std::uint32_t sign = 1U << (format.width() - 1);
  switch (format.specials) {
  case SmallFloat::ieee: return infinity_code(format) | 1U << (format.mantissa_bits - 1);
  case SmallFloat::fn: return sign - 1;
  case SmallFloat::fnuz: return sign;
  case SmallFloat::finite: return 0;
  }
  return 0;
}

float decode_small(const SmallFloat& format, std::uint32_t code) {
  const std::uint32_t sign_bit = 1U << (format.width() - 1), magnitude = code & (sign_bit - 1);
  const bool negative = (code & sign_bit) != 0;
  const std::uint32_t exponent = magnitude >> format.mantissa_bits, mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  const float nan = as_float(0x7fc00000U);
  if (format.specials == SmallFloat::fnuz && negative && magnitude == 0) return nan;
  if (format.specials == SmallFloat::fn && magnitude == sign_bit - 1) return nan;
  if (format.specials == SmallFloat::ieee && magnitude >= infinity_code(format))
    return mantissa != 0 ? nan : as_float(negative ? 0xff800000U : 0x7f800000U);
  const double fraction = std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits);
  const double value =
      exponent == 0 ? std::ldexp(fraction, 1 - format.bias) : std::ldexp(1 + fraction, static_cast<int>(exponent) - format.bias);
  return static_cast<float>(negative ? -value : value);
}

std::uint32_t encode_small(const SmallFloat& format, double value, Rounding rounding, bool saturate) {
  const bool negative = std::signbit(value);
  const std::uint32_t sign = negative ? 1U << (format.width() - 1) : 0;
  if (std::isnan(value)) return format.specials == SmallFloat::finite ? largest_code(format) : nan_code(format);
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return overflow_code(format, sign, saturate);
  if (magnitude == 0) return format.specials == SmallFloat::fnuz ? 0 : sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double quantum = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = round_magnitude(magnitude / quantum, rounding, negative) * quantum;
  if (rounded > largest_value(format)) {
    // Directed rounding toward zero of a finite number never leaves the finite range.
    const bool inward =
        rounding == Rounding::toward_zero || (rounding == Rounding::up && negative) || (rounding == Rounding::down && !negative);
    return overflow_code(format, sign, saturate || inward);
  }
  if (rounded == 0) return format.specials == SmallFloat::fnuz ? 0 : sign;
  const int code_exponent = std::ilogb(rounded);
  if (code_exponent < 1 - format.bias)
    return sign | static_cast<std::uint32_t>(std::ldexp(rounded, format.bias - 1 + format.mantissa_bits));
  const double fraction = std::ldexp(rounded, -code_exponent) - 1;
  return sign | static_cast<std::uint32_t>(code_exponent + format.bias) << format.mantissa_bits |
         static_cast<std::uint32_t>(std::ldexp(fraction, format.mantissa_bits));
}

std::uint32_t encode_stochastic(const SmallFloat& format, double value, std::uint32_t random, bool saturate) {
  if (!std::isfinite(value) || value == 0) return encode_small(format, value, Rounding::nearest_even, saturate);
  const double magnitude = std::fabs(value);
  const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
  const double quantum = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double dithered = magnitude / quantum + std::ldexp(static_cast<double>(random), -32);
  const double truncated = std::floor(dithered) * quantum;
  if (truncated > largest_value(format)) return overflow_code(format, std::signbit(value) ? 1U << (format.width() - 1) : 0, saturate);
  return encode_small(format, std::signbit(value) ? -truncated : truncated, Rounding::toward_zero, saturate);
}

} // namespace kiln::exec
