// Small float formats against a brute-force search over all their codes.
#include "isa_checks/exec/numbers/numeric.h"
#include "tests/exec/lane_program.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>

namespace numeric_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

struct Flavour {
  const char* name;
  SmallFloat format;
  double largest;  // from the formats' definitions
  double smallest; // positive
  int nans;        // codes
};
const Flavour flavours[] = {
    {"e4m3fn", e4m3fn_format, 448, std::ldexp(1, -9), 2},
    {"e5m2", e5m2_format, 57344, std::ldexp(1, -16), 6},
    {"e4m3fnuz", e4m3fnuz_format, 240, std::ldexp(1, -10), 1},
    {"e5m2fnuz", e5m2fnuz_format, 57344, std::ldexp(1, -17), 1},
};

// The codes with finite values in rising order of value, zero once.
struct Codes {
  std::vector<double> values;
  std::vector<u32> codes;
  explicit Codes(const SmallFloat& format) {
    std::vector<std::pair<double, u32>> all;
    for (u32 c = 0; c < 256; ++c) {
      const double v = decode_small(format, c);
      if (std::isfinite(v) && !(v == 0 && (c & 0x80U) != 0)) all.emplace_back(v, c);
    }
    std::sort(all.begin(), all.end());
    for (const auto& [v, c] : all) {
      values.push_back(v);
      codes.push_back(c);
    }
  }
};

// Nearest by distance, ties to the even code; what lies beyond half a step past the largest overflows.
u32 nearest(const Flavour& f, const Codes& codes, double x, bool saturate) {
  const u32 sign = std::signbit(x) ? 0x80U : 0;
  const u32 nan = f.format.specials == SmallFloat::fnuz ? 0x80U : f.format.specials == SmallFloat::fn ? 0x7fU : 0x7eU;
  if (std::isnan(x)) return nan;
  const double step = f.largest - codes.values[codes.values.size() - 2];
  const bool odd_top = (codes.codes.back() & 1U) != 0; // a tie goes away from an odd code
  const double edge = f.largest + step / 2;
  if (std::fabs(x) > edge || (std::fabs(x) == edge && odd_top)) {
    if (saturate) return sign | (codes.codes.back() & 0x7fU);
    return f.format.specials == SmallFloat::ieee ? sign | 0x7cU : f.format.specials == SmallFloat::fn ? sign | nan : nan;
  }
  const auto above = std::lower_bound(codes.values.begin(), codes.values.end(), x);
  std::size_t best = static_cast<std::size_t>(above - codes.values.begin());
  if (best == codes.values.size()) --best;
  if (best > 0) {
    const double up = std::fabs(codes.values[best] - x), down = std::fabs(x - codes.values[best - 1]);
    if (down < up || (down == up && (codes.codes[best - 1] & 1U) == 0)) --best;
  }
  const u32 code = codes.codes[best];
  return codes.values[best] == 0 ? (f.format.specials == SmallFloat::fnuz ? 0 : sign) : code;
}

} // namespace

TEST_CASE("fp8: the 256 codes decode to what the formats say") {
  for (const Flavour& f : flavours) {
    CAPTURE(f.name);
    int nans = 0;
    double largest = 0, smallest = 1e9;
    for (u32 c = 0; c < 256; ++c) {
      const double v = decode_small(f.format, c);
      if (std::isnan(v)) ++nans;
      if (std::isfinite(v)) largest = std::max(largest, v);
      if (v > 0) smallest = std::min(smallest, v);
      if (std::isfinite(v) && v != 0) CHECK(decode_small(f.format, c ^ 0x80U) == -v);
      if (!std::isnan(v)) CHECK(encode_small(f.format, v, Rounding::nearest_even, false) == c);
    }
    CHECK(nans == f.nans);
    CHECK(largest == f.largest);
    CHECK(smallest == f.smallest);
  }
}

TEST_CASE("fp8: every f16 value rounds to the nearest code, saturating or not") {
  for (const Flavour& f : flavours) {
    CAPTURE(f.name);
    const Codes codes(f.format);
    int wrong = 0;
    for (u32 h = 0; h < 65536; ++h)
      for (const bool saturate : {false, true}) {
        const double x = to_float(Half{static_cast<std::uint16_t>(h)});
        const u32 want = nearest(f, codes, x, saturate), got = encode_small(f.format, x, Rounding::nearest_even, saturate);
        if (got != want && ++wrong < 5) MESSAGE(fmt::format("{} of {:#x} ({}) is {:#x}, not {:#x}", f.name, h, x, got, want));
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("fp8: stochastic rounding picks the neighbours in proportion, and never more") {
  std::mt19937 random(3);
  for (const Flavour& f : flavours) {
    CAPTURE(f.name);
    for (const float x : {1.03F, -0.3F, 5.1F, 100.0F, 0.0023F}) {
      double sum = 0;
      for (int i = 0; i < 20000; ++i) {
        const double v = decode_small(f.format, encode_stochastic(f.format, x, static_cast<u32>(random()), true));
        REQUIRE(std::fabs(v - x) < std::max(std::fabs(x) / 3.9, 2 * f.smallest));
        sum += v;
      }
      CHECK(sum / 20000 == doctest::Approx(x).epsilon(0.01));
    }
    CHECK(decode_small(f.format, encode_stochastic(f.format, 2.0F, 0xffffffffU, true)) == 2.0F); // exact stays exact
  }
}

TEST_CASE("f16: fast conversions agree with the slow ones everywhere") {
  int wrong = 0;
  for (u32 h = 0; h < 65536; ++h) {
    const float x = to_float(Half{static_cast<std::uint16_t>(h)});
    if (!same_float(as_bits(x), as_bits(decode_small(f16_format, h)))) ++wrong;
    if (!std::isnan(x) && to_half(x).bits != h) ++wrong;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200000; ++i) {
    const float x =
        as_float((i % 2 == 0 ? 0x33000000U + static_cast<u32>(random()) % 0x14800000U : static_cast<u32>(random())) & 0x7fffffffU);
    if (!std::isnan(x) && to_half(x).bits != encode_small(f16_format, x, Rounding::nearest_even, false)) ++wrong;
    if (!std::isnan(x) && to_bfloat(x).bits != encode_small(bf16_format, x, Rounding::nearest_even, false)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("fp8 instructions: flavour of the architecture, halves and bytes of the destination") {
  const Lanes64 a = floats([](int i) { return static_cast<float>(i) * 1.37F - 40; }),
                b = floats([](int i) { return std::ldexp(1.0F, i / 4 - 7); });
  for (const bool fnuz : {true, false}) {
    const char* arch = fnuz ? "gfx942" : "gfx950";
    const SmallFloat fp8 = fnuz ? e4m3fnuz_format : e4m3fn_format, bf8 = fnuz ? e5m2fnuz_format : e5m2_format;
    const std::string body =
        "v_mov_b32 v64, -1\n v_cvt_pk_fp8_f32 v64, v1, v2\n v_mov_b32 v65, -1\n v_cvt_pk_bf8_f32 v65, v1, v2 op_sel:[0,0,1]\n"
        "v_cvt_pk_f32_fp8 v[66:67], v64\n v_cvt_f32_bf8_sdwa v68, v65 src0_sel:BYTE_3\n s_mov_b32 s20, 0\n"
        "v_mov_b32 v69, 0x11223344\n v_cvt_sr_fp8_f32 v69, v1, s20 op_sel:[0,0,0,1]";
    const LaneResult r = run({.body = body, .inputs = {a, b}, .results = 6, .arch = arch});
    REQUIRE(r.run.defects.empty());
    for (std::size_t i = 0; i < 64; ++i) {
      const u32 lo = encode_small(fp8, as_float(a[i]), Rounding::nearest_even, false),
                hi = encode_small(fp8, as_float(b[i]), Rounding::nearest_even, false);
      CHECK(r.v[0][i] == (0xffff0000U | hi << 8 | lo));
      const u32 blo = encode_small(bf8, as_float(a[i]), Rounding::nearest_even, false),
                bhi = encode_small(bf8, as_float(b[i]), Rounding::nearest_even, false);
      CHECK(r.v[1][i] == (0xffffU | bhi << 24 | blo << 16));
      CHECK(same_float(r.v[2][i], as_bits(decode_small(fp8, lo))));
      CHECK(same_float(r.v[3][i], as_bits(decode_small(fp8, hi))));
      CHECK(same_float(r.v[4][i], as_bits(decode_small(bf8, bhi))));
      CHECK(r.v[5][i] == (0x11003344U | encode_small(fp8, as_float(a[i]), Rounding::toward_zero, false) << 16));
    }
  }
}

} // namespace numeric_test
