// Number formats of the target on the host: f16, bf16, fp8 in both flavours, fp6, fp4; conversions and their rounding.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::exec {

// Storage types, so that a lane function's parameter types say how an operand is read. Arithmetic is done in float or double.
struct Half {
  std::uint16_t bits;
};
struct BFloat {
  std::uint16_t bits;
};

inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline double as_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
inline std::uint64_t as_bits(double value) { return std::bit_cast<std::uint64_t>(value); }

// Branch-free so that the compiler vectorises it; exact, keeps NaN payloads.
inline float to_float(Half h) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(h.bits & 0x7fffU) << 13;
  const std::uint32_t exponent = magnitude & 0x0f800000U;
  const std::uint32_t normal = magnitude + ((127U - 15U) << 23);
  const std::uint32_t special = normal + ((128U - 16U) << 23);
  const std::uint32_t denormal = as_bits(as_float(magnitude + (113U << 23)) - as_float(113U << 23)) & 0x7fffffffU; // 0 - 0 may be -0
  const std::uint32_t result = exponent == 0 ? denormal : exponent == 0x0f800000U ? special : normal;
  return as_float(result | static_cast<std::uint32_t>(h.bits & 0x8000U) << 16);
}
inline float to_float(BFloat b) { return as_float(static_cast<std::uint32_t>(b.bits) << 16); }

// Round to nearest even; overflow gives infinity; NaN is quieted and keeps the top of its payload.
inline Half to_half(float value) {
  const std::uint32_t bits = as_bits(value), magnitude = bits & 0x7fffffffU;
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  const std::uint32_t large = magnitude > 0x7f800000U ? nan : 0x7c00U;
  const std::uint32_t denormal = as_bits(as_float(magnitude < 0x38800000U ? magnitude : 0) + 0.5F) - 0x3f000000U;
  const std::uint32_t rounded = magnitude - ((127U - 15U) << 23) + 0xfffU + ((magnitude >> 13) & 1U);
  const std::uint32_t result = magnitude >= 0x47800000U ? large : magnitude < 0x38800000U ? denormal : rounded >> 13;
  return {static_cast<std::uint16_t>(result | (bits >> 16 & 0x8000U))};
}
inline BFloat to_bfloat(float value) {
  const std::uint32_t bits = as_bits(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>(nan ? (bits >> 16 | 0x40U) : rounded)};
}

enum class Rounding : std::uint8_t { nearest_even = 0, up = 1, down = 2, toward_zero = 3 }; // the MODE register's codes

// A small binary float: sign, exponent, mantissa. `specials` says what the top codes mean.
struct SmallFloat {
  int exponent_bits, mantissa_bits, bias;
  enum Specials : std::uint8_t {
    ieee,  // top exponent: infinity and NaN
    fn,    // all ones: NaN, no infinity (OCP e4m3)
    fnuz,  // negative zero: NaN, nothing else special
    finite // every code is a number (fp6, fp4)
  } specials;
  constexpr int width() const { return 1 + exponent_bits + mantissa_bits; }
};
inline constexpr SmallFloat f16_format{5, 10, 15, SmallFloat::ieee};
inline constexpr SmallFloat bf16_format{8, 7, 127, SmallFloat::ieee};
inline constexpr SmallFloat e4m3fn_format{4, 3, 7, SmallFloat::fn};
inline constexpr SmallFloat e5m2_format{5, 2, 15, SmallFloat::ieee};
inline constexpr SmallFloat e4m3fnuz_format{4, 3, 8, SmallFloat::fnuz};
inline constexpr SmallFloat e5m2fnuz_format{5, 2, 16, SmallFloat::fnuz};
inline constexpr SmallFloat e2m3_format{2, 3, 1, SmallFloat::finite};
inline constexpr SmallFloat e3m2_format{3, 2, 3, SmallFloat::finite};
inline constexpr SmallFloat e2m1_format{2, 1, 1, SmallFloat::finite};

float decode_small(const SmallFloat& format, std::uint32_t code);
std::uint32_t largest_code(const SmallFloat& format); // the largest finite magnitude, sign clear
std::uint32_t nan_code(const SmallFloat& format);     // 0 for a format that has none

// Rounds `value` to the format. Overflow gives the largest finite number when `saturate`, else infinity or, in a format
// without one, NaN. An infinity saturates too. `finite` formats always saturate and take NaN as the largest number.
std::uint32_t encode_small(const SmallFloat& format, double value, Rounding rounding, bool saturate);

// Stochastic rounding: the 32 bits of `random` are added below the last bit that is kept, its top bit half as much as that, then
// truncated.
std::uint32_t encode_stochastic(const SmallFloat& format, double value, std::uint32_t random, bool saturate);

} // namespace kiln::exec
