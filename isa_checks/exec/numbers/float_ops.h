// Floating-point rules of the vector unit that C++ does not have: minimum and maximum, medians, saturating conversions.
#pragma once
#include "isa_checks/exec/numbers/numeric.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::exec {

// IEEE-754-2008 minNum and maxNum, with -0 below +0.
template <class T> inline T min_number(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T> inline T max_number(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
// A NaN whose quiet bit, the highest of the fraction, is not set; and that NaN with the bit.
inline bool is_signalling(float x) { return x != x && (as_bits(x) & 0x00400000U) == 0; }
inline bool is_signalling(double x) { return x != x && (as_bits(x) & 0x0008000000000000U) == 0; }
inline bool is_signalling(Half x) { return (x.bits & 0x7c00U) == 0x7c00U && (x.bits & 0x3ffU) != 0 && (x.bits & 0x200U) == 0; }
inline float quiet(float x) { return as_float(as_bits(x) | 0x00400000U); }
inline double quiet(double x) { return as_double(as_bits(x) | 0x0008000000000000U); }
inline Half quiet(Half x) { return {static_cast<std::uint16_t>(x.bits | 0x200U)}; }
// `f` of two numbers as MODE.IEEE has it: a signalling NaN comes out quiet, where f alone passes over it.
template <class T, class F> inline T quieting(T a, T b, F f) { return is_signalling(a) ? quiet(a) : is_signalling(b) ? quiet(b) : f(a, b); }

// IEEE-754-2019 minimum and maximum: NaN wins.
template <class T> inline T minimum(T a, T b) { return a != a ? a : b != b ? b : min_number(a, b); }
template <class T> inline T maximum(T a, T b) { return a != a ? a : b != b ? b : max_number(a, b); }

template <class T> inline T median(T a, T b, T c) {
  if (a != a || b != b || c != c) return min_number(min_number(a, b), c);
  const T top = max_number(max_number(a, b), c);
  if (top == a) return max_number(b, c);
  if (top == b) return max_number(a, c);
  return max_number(a, b);
}
template <class T> inline T median_integer(T a, T b, T c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

// The closest number of an integer type.
template <class T> inline T saturate(std::int64_t x) {
  return static_cast<T>(std::clamp<std::int64_t>(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// Truncates toward zero and saturates; NaN gives 0.
template <class I, class F> inline I saturating(F x) {
  constexpr F top = static_cast<F>(9223372036854775808.0); // 2^63, above every type used here
  static_assert(sizeof(I) <= 4);
  if (x != x) return 0;
  return saturate<I>(static_cast<std::int64_t>(std::min(std::max(x, -top / 2), top / 2)));
}

// `old` with its byte `at` replaced by `x` rounded to 0 to 255.
inline std::uint32_t insert_byte(float x, std::uint32_t at, std::uint32_t old) {
  const int shift = static_cast<int>(8 * (at & 3U));
  const std::uint32_t byte = x != x ? 0U : static_cast<std::uint32_t>(std::nearbyint(std::clamp(x, 0.0F, 255.0F)));
  return (old & ~(0xffU << shift)) | byte << shift;
}

inline float flush(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x; }

// a + b in double, where the last bit remembers that something was rounded away: rounding the result again to far fewer bits is
// then as good as rounding the exact sum.
inline double sum_to_odd(double a, double b) {
  const double s = a + b, t = s - a, rest = (a - (s - t)) + (b - t);
  if (!std::isfinite(s) || rest == 0 || (as_bits(s) & 1U) != 0) return s;
  return std::nextafter(s, rest > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
}

// Round to nearest even without touching the host's rounding mode.
inline float round_even(float x) { return std::nearbyint(x); }
inline double round_even(double x) { return std::nearbyint(x); }

template <class T> inline T fraction(T x, T largest_below_one) {
  if (std::isinf(x)) return std::numeric_limits<T>::quiet_NaN();
  return std::min(x - std::floor(x), largest_below_one);
}
template <class T> inline int frexp_exponent(T x) {
  if (x != x || std::isinf(x) || x == 0) return 0;
  int e = 0;
  (void)std::frexp(x, &e);
  return e;
}
template <class T> inline T frexp_mantissa(T x) {
  if (x != x || std::isinf(x)) return x;
  int e = 0;
  return std::frexp(x, &e);
}
template <class T> inline T load_exponent(T x, std::int32_t e) { return std::ldexp(x, std::clamp(e, -5000, 5000)); }

// v_cmp_class: a bit for each of sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
inline bool float_class(std::uint64_t bits, int exponent_bits, int mantissa_bits, std::uint32_t wanted) {
  const std::uint64_t mantissa = bits & ((1ULL << mantissa_bits) - 1);
  const std::uint64_t top = (1ULL << exponent_bits) - 1, exponent = bits >> mantissa_bits & top;
  const bool negative = (bits >> (exponent_bits + mantissa_bits) & 1U) != 0;
  int which = 0;
  if (exponent == top && mantissa != 0) which = (mantissa >> (mantissa_bits - 1) & 1U) != 0 ? 1 : 0;
  else if (exponent == top) which = negative ? 2 : 9;
  else if (exponent != 0) which = negative ? 3 : 8;
  else if (mantissa != 0) which = negative ? 4 : 7;
  else which = negative ? 5 : 6;
  return (wanted >> which & 1U) != 0;
}

} // namespace kiln::exec
