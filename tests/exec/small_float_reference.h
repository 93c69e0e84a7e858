// Small float formats by definition: every code's value, and the nearest or stochastically chosen code of a number, found by
// searching all codes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kiln::exec::testing {

struct ReferenceFormat {
  enum Top : std::uint8_t { ieee, one_nan, negative_zero_nan, numbers } top; // what the top codes mean
  int exponent_bits, mantissa_bits, bias;
  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  std::uint32_t sign() const { return 1U << (bits() - 1); }
  std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << mantissa_bits; }
  std::uint32_t nan() const {
    return top == ieee                ? infinity() + (1U << (mantissa_bits - 1))
           : top == one_nan           ? sign() - 1
           : top == negative_zero_nan ? sign()
                                      : largest();
  }
  std::uint32_t largest() const { return top == ieee ? infinity() - 1 : top == one_nan ? sign() - 2 : sign() - 1; }

  // The value of a magnitude's code, also of the one after the largest: where the next step would be.
  double step(std::uint32_t code) const {
    const std::uint32_t exponent = code >> mantissa_bits, mantissa = code % (1U << mantissa_bits);
    const double digits = mantissa + (exponent == 0 ? 0U : 1U << mantissa_bits);
    return std::ldexp(digits, static_cast<int>(std::max(exponent, 1U)) - bias - mantissa_bits);
  }
  double value(std::uint32_t code) const {
    const std::uint32_t magnitude = code % sign();
    const bool negative = code >= sign();
    if (top == negative_zero_nan && code == sign()) return std::numeric_limits<double>::quiet_NaN();
    if (top == one_nan && magnitude == sign() - 1) return std::numeric_limits<double>::quiet_NaN();
    if (top == ieee && magnitude >= infinity())
      return magnitude > infinity() ? std::numeric_limits<double>::quiet_NaN()
                                    : std::copysign(std::numeric_limits<double>::infinity(), negative ? -1.0 : 1.0);
    return negative ? -step(magnitude) : step(magnitude);
  }
  std::uint32_t overflow(bool negative, bool saturate) const {
    const std::uint32_t s = negative ? sign() : 0;
    if (saturate || top == numbers) return s + largest();
    return top == ieee ? s + infinity() : top == one_nan ? s + nan() : nan();
  }
  std::uint32_t with_sign(std::uint32_t magnitude, bool negative) const {
    return magnitude == 0 && top == negative_zero_nan ? 0 : magnitude + (negative ? sign() : 0);
  }
  // The magnitude's code at or below |x|, at most the largest.
  std::uint32_t below(double x) const {
    std::uint32_t low = 0, high = largest() + 1;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (step(middle) <= std::fabs(x) ? low : high) = middle;
    }
    return low;
  }
  // Special cases; ~0 when there is none.
  std::uint32_t special(double x, bool saturate) const {
    if (std::isnan(x)) return nan();
    return std::isinf(x) ? overflow(x < 0, saturate) : ~0U;
  }
  std::uint32_t nearest(double x, bool saturate = false) const {
    if (const std::uint32_t s = special(x, saturate && std::isfinite(x)); s != ~0U) return s;
    std::uint32_t code = below(x);
    const double up = step(code + 1) - std::fabs(x), down = std::fabs(x) - step(code);
    if (up < down || (up == down && code % 2 == 1)) ++code;
    return code > largest() ? overflow(std::signbit(x), saturate) : with_sign(code, std::signbit(x));
  }
  // Up when the part of a step that is left, plus random / 2^32, makes a whole step.
  std::uint32_t stochastic(double x, std::uint32_t random, bool saturate = false) const {
    if (const std::uint32_t s = special(x, saturate && std::isfinite(x)); s != ~0U) return s;
    std::uint32_t code = below(x);
    const double width = step(code + 1) - step(code), part = (std::fabs(x) - step(code)) / width;
    if (code == largest() && part >= 1) code += 1;
    else if (part + std::ldexp(static_cast<double>(random), -32) >= 1) ++code;
    return code > largest() ? overflow(std::signbit(x), saturate) : with_sign(code, std::signbit(x));
  }
};
inline constexpr ReferenceFormat f32_reference{ReferenceFormat::ieee, 8, 23, 127}, f16_reference{ReferenceFormat::ieee, 5, 10, 15},
    bf16_reference{ReferenceFormat::ieee, 8, 7, 127};
inline constexpr ReferenceFormat fp8_reference{ReferenceFormat::one_nan, 4, 3, 7}, bf8_reference{ReferenceFormat::ieee, 5, 2, 15};
inline constexpr ReferenceFormat fp8_fnuz_reference{ReferenceFormat::negative_zero_nan, 4, 3, 8},
    bf8_fnuz_reference{ReferenceFormat::negative_zero_nan, 5, 2, 16};
inline constexpr ReferenceFormat fp6_reference{ReferenceFormat::numbers, 2, 3, 1}, bf6_reference{ReferenceFormat::numbers, 3, 2, 3},
    fp4_reference{ReferenceFormat::numbers, 2, 1, 1};

} // namespace kiln::exec::testing
