// Element types: every bit pattern against the definition of its format, and every rounding between two neighbours.
#include "gen/spec/dtype.h"
#include <bit>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace kiln;

namespace {

struct Definition {
  DType type;
  int bits, mantissa_bits, bias;
  std::uint32_t largest; // bits of the largest finite value
  bool has_infinity, is_fnuz;
};

// Bits of the largest finite values: OCP OFP8 table 1 (e4m3 S.1111.110, e5m2 S.11110.11); fnuz all ones.
constexpr Definition definitions[] = {
    {f16, 16, 10, 15, 0x7bff, true, false}, {bf16, 16, 7, 127, 0x7f7f, true, false}, {e4m3fn, 8, 3, 7, 0x7e, false, false},
    {e4m3fnuz, 8, 3, 8, 0x7f, false, true}, {e5m2, 8, 2, 15, 0x7b, true, false},     {e5m2fnuz, 8, 2, 16, 0x7f, false, true},
};

std::uint32_t sign_of(const Definition& d) { return 1u << (d.bits - 1); }

// The value of a finite, positive pattern, from the definition of a binary floating-point format.
double defined_value(const Definition& d, std::uint32_t bits) {
  const double mantissa = (bits & ((1u << d.mantissa_bits) - 1)) / std::pow(2.0, d.mantissa_bits);
  const int exponent = static_cast<int>(bits >> d.mantissa_bits);
  return exponent == 0 ? mantissa * std::pow(2.0, 1 - d.bias) : (1 + mantissa) * std::pow(2.0, exponent - d.bias);
}

constexpr float inf = std::numeric_limits<float>::infinity();

} // namespace

TEST_CASE("every finite pattern has its defined value and comes back from it") {
  for (const Definition& d : definitions) {
    CAPTURE(to_string(d.type));
    int wrong_value = 0, wrong_trip = 0;
    for (std::uint32_t bits = 0; bits <= d.largest; ++bits) {
      const double value = defined_value(d, bits);
      wrong_value += static_cast<double>(to_f32(d.type, bits)) != value;
      wrong_trip += from_f32(d.type, static_cast<float>(value)) != bits;
      if (bits == 0 && d.is_fnuz) continue; // no negative zero
      const std::uint32_t negative = bits | sign_of(d);
      wrong_value += static_cast<double>(to_f32(d.type, negative)) != -value;
      wrong_trip += from_f32(d.type, static_cast<float>(-value)) != negative;
    }
    CHECK(wrong_value == 0);
    CHECK(wrong_trip == 0);
    CHECK(max_finite(d.type) == defined_value(d, d.largest));
  }
}

TEST_CASE("every other pattern is infinity or NaN, as its format says") {
  for (const Definition& d : definitions) {
    CAPTURE(to_string(d.type));
    const std::uint32_t infinity = d.largest + 1;
    for (std::uint32_t bits = d.largest + 1; bits < sign_of(d); ++bits)
      for (const std::uint32_t pattern : {bits, bits | sign_of(d)}) {
        const float value = to_f32(d.type, pattern);
        const bool is_right = d.has_infinity && bits == infinity ? value == (pattern == bits ? inf : -inf) : std::isnan(value);
        if (!is_right) FAIL_CHECK("pattern " << pattern << " is " << value);
      }
    if (d.is_fnuz) CHECK(std::isnan(to_f32(d.type, sign_of(d))));
    CHECK(std::isnan(to_f32(d.type, from_f32(d.type, NAN))));
    CHECK(std::isnan(to_f32(d.type, from_f32(d.type, -NAN))));
    CHECK(to_f32(d.type, from_f32(d.type, -0.0f)) == 0.0f);
    CHECK(std::signbit(to_f32(d.type, from_f32(d.type, -0.0f))) == !d.is_fnuz);
    CHECK(std::signbit(to_f32(d.type, from_f32(d.type, -1e-30f))) == (!d.is_fnuz || d.type == bf16));
  }
}

TEST_CASE("between neighbours the nearer is taken, and in the middle the even one") {
  for (const Definition& d : definitions) {
    CAPTURE(to_string(d.type));
    int wrong = 0;
    for (std::uint32_t bits = 0; bits < d.largest; ++bits) {
      const auto middle = static_cast<float>((defined_value(d, bits) + defined_value(d, bits + 1)) / 2);
      const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
      wrong += from_f32(d.type, middle) != even;
      wrong += from_f32(d.type, std::nextafter(middle, 0.0f)) != bits;
      wrong += from_f32(d.type, std::nextafter(middle, inf)) != bits + 1;
      const bool even_is_zero = even == 0 && d.is_fnuz;
      wrong += from_f32(d.type, -middle) != (even_is_zero ? 0 : even | sign_of(d));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("overflow") {
  for (const Definition& d : definitions) {
    CAPTURE(to_string(d.type));
    const bool is_8_bit = d.bits == 8;
    const double step = defined_value(d, d.largest) - defined_value(d, d.largest - 1);
    const auto largest = static_cast<float>(max_finite(d.type));
    const auto threshold = static_cast<float>(max_finite(d.type) + step / 2); // rounds to even: up, unless largest is even
    const bool largest_is_even = d.largest % 2 == 0;
    const auto overflows = [&](float value, bool saturate) {
      const float r = round_to(d.type, value, saturate);
      return d.has_infinity ? std::isinf(r) : std::isnan(r);
    };
    CHECK(round_to(d.type, std::nextafter(threshold, 0.0f), false) == largest);
    CHECK(overflows(threshold, false) == !largest_is_even);
    CHECK(overflows(std::nextafter(threshold, inf), false));
    CHECK(overflows(std::numeric_limits<float>::max(), false));
    CHECK(overflows(inf, true));
    CHECK(overflows(-inf, true));
    CHECK(overflows(inf, false));
    for (const float value : {threshold, 1e30f, std::numeric_limits<float>::max()}) {
      if (!is_8_bit && value < 1e38f && d.type == bf16) continue; // finite in bf16
      if (is_8_bit) {
        CHECK(round_to(d.type, value) == largest);
        CHECK(round_to(d.type, -value) == -largest);
      } else {
        CHECK(std::isinf(round_to(d.type, value))); // saturation is for fp8 alone
      }
    }
  }
}

TEST_CASE("well-known numbers") {
  CHECK(max_finite(e4m3fn) == 448);
  CHECK(max_finite(e4m3fnuz) == 240);
  CHECK(max_finite(e5m2) == 57344);
  CHECK(max_finite(e5m2fnuz) == 57344);
  CHECK(max_finite(f16) == 65504);
  CHECK(to_f32(e4m3fn, 0x38) == 1.0f);
  CHECK(to_f32(e4m3fnuz, 0x40) == 1.0f);
  CHECK(to_f32(e5m2, 0x3c) == 1.0f);
  CHECK(to_f32(e5m2fnuz, 0x40) == 1.0f);
  CHECK(to_f32(e4m3fn, 0x01) == 0x1p-9f);
  CHECK(to_f32(e4m3fnuz, 0x01) == 0x1p-10f);
  CHECK(from_f32(f16, 65519.0f) == 0x7bff);
  CHECK(from_f32(f16, 65520.0f) == 0x7c00);
  CHECK(from_f32(bf16, 1.00390625f) == 0x3f80); // 1 + 2^-8: the middle, even below
  CHECK(from_f32(bf16, 1.01171875f) == 0x3f82); // 1 + 3 * 2^-8: the middle, even above
}

// OCP Microscaling Formats 1.0, tables 5 and 7.
TEST_CASE("e2m1 and e8m0") {
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    CHECK(to_f32(e2m1, code) == numbers[code]);
    CHECK(to_f32(e2m1, code | 8) == -numbers[code]);
    CHECK(from_f32(e2m1, numbers[code]) == code);
    CHECK(from_f32(e2m1, -numbers[code]) == (code | 8));
  }
  for (const auto& [x, code] :
       {std::pair{0.25f, 0U}, {0.75f, 2U}, {1.25f, 2U}, {1.75f, 4U}, {2.5f, 4U}, {3.5f, 6U}, {5.0f, 6U}, {5.1f, 7U}})
    CHECK(from_f32(e2m1, x) == code); // ties go to the even code
  CHECK(from_f32(e2m1, 1e30f) == 7u);
  CHECK(from_f32(e2m1, -inf) == 15u);
  CHECK(from_f32(e2m1, NAN) == 7u);
  CHECK(storage_bytes(e2m1, 64) == 32);
  CHECK(is_packed(e2m1));
  CHECK(!is_fp8(e8m0));
  for (std::uint32_t code = 0; code < 255; ++code) {
    const float number = std::ldexp(1.0f, static_cast<int>(code) - 127);
    CHECK(to_f32(e8m0, code) == number);
    CHECK(from_f32(e8m0, number) == code);
    CHECK(from_f32(e8m0, number * -1.75f) == code); // the power of two below the magnitude
  }
  CHECK(std::isnan(to_f32(e8m0, 255)));
  CHECK(from_f32(e8m0, 0) == 0u);
  CHECK(from_f32(e8m0, 0x1p-149f) == 0u);
  CHECK(from_f32(e8m0, inf) == 255u);
  CHECK(from_f32(e8m0, NAN) == 255u);
}

TEST_CASE("integers and bool") {
  CHECK(round_to(i8, 2.5f) == 2.0f);
  CHECK(round_to(i8, 3.5f) == 4.0f);
  CHECK(round_to(i8, -1000.0f) == -128.0f);
  CHECK(round_to(i8, inf) == 127.0f);
  CHECK(round_to(i8, NAN) == 0.0f);
  CHECK(round_to(u8, -3.0f) == 0.0f);
  CHECK(round_to(u8, 255.4f) == 255.0f);
  CHECK(from_f32(i32, 3e9f) == 0x7fffffffu);
  CHECK(from_f32(i32, -3e9f) == 0x80000000u);
  CHECK(from_f32(i32, NAN) == 0u);
  CHECK(to_f32(i32, 16777217u) == 16777216.0f); // to nearest even above 2^24
  CHECK(to_f32(i32, 16777219u) == 16777220.0f);
  for (int value = -128; value < 128; ++value) CHECK(to_f32(i8, from_f32(i8, static_cast<float>(value))) == static_cast<float>(value));
  for (int value = 0; value < 256; ++value) CHECK(to_f32(u8, from_f32(u8, static_cast<float>(value))) == static_cast<float>(value));
  CHECK(from_f32(boolean, -0.0f) == 0u);
  CHECK(from_f32(boolean, 1e-40f) == 1u);
  CHECK(from_f32(boolean, NAN) == 1u);
  CHECK(to_f32(boolean, 0xff) == 1.0f);
}

TEST_CASE("f32 keeps its bits") {
  for (const std::uint32_t bits : {0u, 0x80000000u, 1u, 0x3f800001u, 0x7f800000u, 0xff800000u, 0x7fc00001u})
    CHECK(from_f32(f32, to_f32(f32, bits)) == bits);
}

TEST_CASE("names go both ways") {
  std::vector<std::string_view> names;
  for (const DType type : all_dtypes()) {
    CHECK(parse_dtype(to_string(type)) == type);
    names.push_back(to_string(type));
  }
  CHECK(names == std::vector<std::string_view>{"f32", "f16", "bf16", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e2m1", "e8m0", "i32", "i64",
                                               "i8", "u8", "bool"});
  CHECK(!parse_dtype("fp8"));
  CHECK(!parse_dtype("F16"));
  CHECK(!parse_dtype(""));
}
