// Element types: their names, and exact conversion between their memory bits and f32.
#include "gen/spec/dtype.h"
#include "gen/error.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace kiln {
namespace {

enum class Special : std::uint8_t { ieee, only_nan_at_top, fnuz, numbers, power, none }; // what the special bit patterns mean

struct Format {
  std::string_view name;
  int bits;
  int exponent_bits, mantissa_bits, bias; // floating types
  Special special;
  double max_finite, min_finite;
};

constexpr double i32_max = 2147483647.0, i32_min = -2147483648.0;

// f16: IEEE 754 binary16. bf16: the upper half of binary32. e4m3fn, e5m2: OCP 8-bit Floating Point Specification 1.0.
// e2m1: OCP Microscaling Formats 1.0, 5.3.3, numbers only. e8m0: the same, 5.4.1, an exponent alone.
// fnuz: bias one higher, no infinity, no negative zero, the bits of negative zero mean NaN (LLVM's APFloat semantics).
constexpr Format formats[] = {
    {"f32", 32, 8, 23, 127, Special::ieee, 0x1.fffffep127, -0x1.fffffep127},
    {"f16", 16, 5, 10, 15, Special::ieee, 65504, -65504},
    {"bf16", 16, 8, 7, 127, Special::ieee, 0x1.fep127, -0x1.fep127},
    {"e4m3fn", 8, 4, 3, 7, Special::only_nan_at_top, 448, -448},
    {"e4m3fnuz", 8, 4, 3, 8, Special::fnuz, 240, -240},
    {"e5m2", 8, 5, 2, 15, Special::ieee, 57344, -57344},
    {"e5m2fnuz", 8, 5, 2, 16, Special::fnuz, 57344, -57344},
    {"e2m1", 4, 2, 1, 1, Special::numbers, 6, -6},
    {"e8m0", 8, 8, 0, 127, Special::power, 0x1p127, 0x1p-127},
    {"i32", 32, 0, 0, 0, Special::none, i32_max, i32_min},
    {"i64", 64, 0, 0, 0, Special::none, i32_max, i32_min}, // as far as row indices go
    {"i8", 8, 0, 0, 0, Special::none, 127, -128},
    {"u8", 8, 0, 0, 0, Special::none, 255, 0},
    {"bool", 8, 0, 0, 0, Special::none, 1, 0},
};

const Format& format(DType type) { return formats[static_cast<std::size_t>(type)]; }

std::uint32_t sign_bit(const Format& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }
std::uint32_t exponent_ones(const Format& f) { return ((1u << f.exponent_bits) - 1) << f.mantissa_bits; }

std::uint32_t quiet_nan(const Format& f) {
  switch (f.special) {
  case Special::fnuz: return sign_bit(f);
  case Special::only_nan_at_top:
  case Special::numbers: return sign_bit(f) - 1; // the latter: the largest number
  default: return exponent_ones(f) | (1u << (f.mantissa_bits - 1));
  }
}

float decode(const Format& f, std::uint32_t bits) {
  const bool negative = bits & sign_bit(f);
  const std::uint32_t magnitude = bits & (sign_bit(f) - 1);
  const auto mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (f.special == Special::fnuz && negative && magnitude == 0) return nan;
  if (f.special == Special::only_nan_at_top && magnitude == sign_bit(f) - 1) return nan;
  if (f.special == Special::ieee && (magnitude & exponent_ones(f)) == exponent_ones(f)) {
    if (mantissa) return nan;
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  const double significand = exponent == 0 ? mantissa : mantissa + (1u << f.mantissa_bits);
  const double value = std::ldexp(significand, (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
  return static_cast<float>(negative ? -value : value);
}

std::uint32_t encode(const Format& f, float value, bool saturate) {
  if (std::isnan(value)) return quiet_nan(f);
  const std::uint32_t sign = std::signbit(value) ? sign_bit(f) : 0;
  const bool is_fp8 = f.bits == 8;
  const auto overflow = [&] {
    if (f.special == Special::numbers) return sign | (sign_bit(f) - 1);
    return f.special == Special::ieee ? sign | exponent_ones(f) : quiet_nan(f);
  };
  if (std::isinf(value)) return overflow();
  // Scale so that the last kept bit has weight 1, round to an integer (ties to even), and read the bits off. Everything
  // is exact in double. The smallest exponent is that of the denormals.
  const double magnitude = std::fabs(static_cast<double>(value));
  const int smallest = 1 - f.bias;
  const int exponent = magnitude == 0 ? smallest : std::max(std::ilogb(magnitude), smallest);
  const double integer = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  if (std::ldexp(integer, exponent - f.mantissa_bits) > f.max_finite) {
    if (!is_fp8 || !saturate) return overflow();
    return sign | encode(f, static_cast<float>(f.max_finite), false);
  }
  // A significand that rounded up to the next power of two carries into the exponent by itself; a denormal has no
  // implicit bit, so its exponent field comes out as 0 in the same sum.
  const auto field = static_cast<std::uint32_t>(exponent - smallest) << f.mantissa_bits;
  const std::uint32_t bits = field + static_cast<std::uint32_t>(integer);
  return bits == 0 && f.special == Special::fnuz ? 0 : sign | bits;
}

constexpr std::uint32_t nan_of_powers = 0xff; // 2^(n - 127) is n

float decode_power(std::uint32_t bits) {
  return bits == nan_of_powers ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

std::uint32_t encode_power(float value) {
  if (!std::isfinite(value)) return nan_of_powers;
  return value == 0 ? 0 : static_cast<std::uint32_t>(std::max(std::ilogb(value) + 127, 0));
}

std::uint32_t encode_integer(const Format& f, float value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(static_cast<double>(value));
  const double clamped = std::fmin(std::fmax(rounded, f.min_finite), f.max_finite);
  const auto bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(clamped));
  return f.bits == 8 ? bits & 0xffu : bits;
}

} // namespace

std::string_view to_string(DType type) { return format(type).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < std::size(formats); ++i)
    if (formats[i].name == text) return static_cast<DType>(i);
  return {};
}

std::span<const DType> all_dtypes() {
  static constexpr DType all[] = {f32, f16, bf16, e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, e2m1, e8m0, i32, i64, i8, u8, boolean};
  static_assert(std::size(all) == std::size(formats));
  return all;
}

int size_bits(DType type) { return format(type).bits; }
int size_bytes(DType type) {
  if (is_packed(type)) throw InternalError(fmt::format("the size of one {} in bytes", to_string(type)));
  return size_bits(type) / 8;
}
bool is_packed(DType type) { return size_bits(type) < 8; }
std::int64_t storage_bytes(DType type, std::int64_t elements) { return (elements * size_bits(type) + 7) / 8; }
bool is_float(DType type) { return format(type).special != Special::none; }
bool is_fp8(DType type) { return is_float(type) && size_bits(type) == 8 && type != e8m0; }
bool is_ocp_fp8(DType type) { return is_fp8(type) && !is_fnuz(type); }
bool is_fnuz(DType type) { return format(type).special == Special::fnuz; }
double max_finite(DType type) { return format(type).max_finite; }

float to_f32(DType type, std::uint32_t bits) {
  switch (type) {
  case DType::f32: return std::bit_cast<float>(bits);
  case DType::i32:
  case DType::i64: return static_cast<float>(static_cast<std::int32_t>(bits));
  case DType::i8: return static_cast<float>(static_cast<std::int8_t>(bits & 0xffu));
  case DType::u8: return static_cast<float>(bits & 0xffu);
  case DType::boolean: return (bits & 0xffu) != 0 ? 1.0f : 0.0f;
  case DType::e8m0: return decode_power(bits & 0xffu);
  default: return decode(format(type), bits);
  }
}

std::uint32_t from_f32(DType type, float value, bool saturate) {
  switch (type) {
  case DType::f32: return std::bit_cast<std::uint32_t>(value);
  case DType::boolean: return value != 0.0f ? 1 : 0; // NaN != 0 holds
  case DType::e8m0: return encode_power(value);
  default: return is_float(type) ? encode(format(type), value, saturate) : encode_integer(format(type), value);
  }
}

float round_to(DType type, float value, bool saturate) { return to_f32(type, from_f32(type, value, saturate)); }

} // namespace kiln
