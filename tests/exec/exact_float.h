// Correct rounding worked out from exact values, for expected results: f32, f64 and f16 in every direction.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace kiln::exec::testing {

enum Direction { nearest, up, down, zero }; // the codes of MODE

// An exact real number as a double and what is left of it; the sum of both.
struct Exact {
  double high, low;
};
inline Exact sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, std::isfinite(s) ? (a - (s - t)) + (b - t) : 0};
}
inline Exact product(double a, double b) {
  const double p = a * b;
  return {p, std::isfinite(p) ? std::fma(a, b, -p) : 0};
}
// x, moved by one step of T when it lies on the wrong side of the exact value; `rest` is the exact value minus x.
template <class T> T directed(T x, double rest, Direction d, bool negative) {
  const bool outward = d == up ? rest > 0 : d == down ? rest < 0 : false, inward = d == zero && rest != 0;
  const T infinity = std::numeric_limits<T>::infinity();
  if (d == up && outward) return std::nextafter(x, infinity);
  if (d == down && outward) return std::nextafter(x, -infinity);
  if (inward && (negative ? rest > 0 : rest < 0)) return std::nextafter(x, T{0});
  return x;
}
inline float to_single(Exact e, Direction d) {
  if (!std::isfinite(e.high)) return static_cast<float>(e.high);
  double odd = e.high; // the last bit of the double remembers that something is left
  if (e.low != 0 && (std::bit_cast<std::uint64_t>(odd) & 1) == 0)
    odd = std::nextafter(odd, e.low > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
  const float x = static_cast<float>(odd);
  return d == nearest ? x : directed(x, std::isinf(x) ? -static_cast<double>(x) : odd - static_cast<double>(x), d, odd < 0);
}
inline double to_double(Exact e, Direction d) {
  return d == nearest || !std::isfinite(e.high) ? e.high : directed(e.high, e.low, d, e.high < 0);
}
// An exact zero of two numbers that are not both that zero is +0, or -0 when rounding down.
template <class T> T zero_sum(T a, T b, T result, Direction d) {
  if (result != 0 || (a == 0 && b == 0 && std::signbit(a) == std::signbit(b)) || a != -b) return result;
  return d == down ? T(-0.0) : T(0.0);
}

template <class T> T flushed(T x, bool flush) { return flush && std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T{0}, x) : x; }

// All halves in rising order.
inline const std::vector<std::pair<double, std::uint32_t>>& halves() {
  static const auto all = [] {
    std::vector<std::pair<double, std::uint32_t>> v;
    for (std::uint32_t c = 0; c < 0x7c00; ++c)
      for (const std::uint32_t sign : {0U, 0x8000U}) {
        const double digits = (c & 0x3ffU) + (c < 0x400 ? 0U : 0x400U),
                     m = std::ldexp(digits, static_cast<int>(std::max(c >> 10, 1U)) - 25);
        if (c != 0 || sign == 0) v.emplace_back(sign != 0 ? -m : m, c | sign);
      }
    std::sort(v.begin(), v.end());
    return v;
  }();
  return all;
}
inline double half_value(std::uint32_t h) {
  if ((h & 0x7c00U) == 0x7c00U) return (h & 0x3ffU) != 0 ? std::nan("") : (h & 0x8000U) != 0 ? -INFINITY : INFINITY;
  const std::uint32_t c = h & 0x7fffU;
  const double m = std::ldexp((c & 0x3ffU) + (c < 0x400 ? 0U : 0x400U), static_cast<int>(std::max(c >> 10, 1U)) - 25);
  return (h & 0x8000U) != 0 ? -m : m;
}
inline std::uint32_t round_half(double x, Direction d, bool saturate) {
  const std::uint32_t sign = std::signbit(x) ? 0x8000U : 0;
  if (std::isnan(x)) return 0x7e00;
  if (x == 0 || std::isinf(x)) return sign | (x == 0 ? 0U : 0x7c00U);
  const auto& all = halves();
  const auto above = std::lower_bound(all.begin(), all.end(), std::pair<double, std::uint32_t>{x, 0});
  const bool too_high = above == all.end();
  if (!too_high && above->first == x) return above->second;
  const double high = too_high ? 65536 : above->first, low = above == all.begin() ? -65536 : (above - 1)->first;
  bool upward = d == up || (d == zero && x < 0);
  if (d == nearest) {
    const std::uint32_t low_code = above == all.begin() ? 0x7c00 : (above - 1)->second;
    upward = high - x < x - low || (high - x == x - low && (low_code & 1U) != 0);
  }
  const double rounded = upward ? high : low;
  if (std::fabs(rounded) > 65504) return sign | (saturate ? 0x7bffU : 0x7c00U);
  return rounded == 0 ? sign : std::lower_bound(all.begin(), all.end(), std::pair<double, std::uint32_t>{rounded, 0})->second;
}
} // namespace kiln::exec::testing
