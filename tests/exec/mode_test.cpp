// The MODE register: rounding and denormal modes of f32, f64 and f16 arithmetic, FP16_OVFL, and writes of parts of it.
#include "tests/exec/exact_float.h"
#include "tests/exec/lane_program.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>

namespace mode_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::string set_mode(u32 value) { return fmt::format("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), {:#x}\n s_nop 1\n", value); }

u32 flush_half(u32 h, bool flush) { return flush && (h & 0x7c00U) == 0 ? h & 0x8000U : h; }

} // namespace

TEST_CASE("MODE.IEEE: minima and maxima make a signalling NaN quiet, and pass over it without") {
  const Lanes64 signalling = each_lane([](int) { return 0x7f800001U; }), one = each_lane([](int) { return 0x3f800000U; });
  const Lanes64 halves = each_lane([](int) { return 0x3c007c01U; }); // 1 and a signalling NaN
  const std::string body =
      "v_max_f32 v64, v1, v2\n v_min_f32 v65, v2, v1\n v_max_f32 v66, v1, v1\n v_pk_max_f16 v67, v3, v3\n v_max_f16 v68, v3, v2\n";
  const LaneResult with = run({.body = body, .inputs = {signalling, one, halves}, .results = 5});
  const LaneResult without =
      run({.body = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0\n s_nop 4\n" + body, .inputs = {signalling, one, halves}, .results = 5});
  REQUIRE(with.run.defects.empty());
  REQUIRE(without.run.defects.empty());
  for (std::size_t k = 0; k < 3; ++k) CHECK(with.v[k][0] == 0x7fc00001U);
  CHECK(with.v[3][0] == 0x3c007e01U);
  CHECK((with.v[4][0] & 0xffffU) == 0x7e01U);
  CHECK(without.v[0][0] == 0x3f800000U);
  CHECK(without.v[1][0] == 0x3f800000U);
  CHECK((without.v[4][0] & 0xffffU) == 0x0000U); // the low half of 1.0 as f32
}

TEST_CASE("MODE: f32 sums, products and fused products in every rounding and denormal mode") {
  int cases = 0;
  for (u32 rounding = 0; rounding < 4; ++rounding)
    for (u32 denormals = 0; denormals < 4; ++denormals) {
      const auto d = static_cast<Direction>(rounding);
      const bool in = (denormals & 1) == 0, out = (denormals & 2) == 0;
      CAPTURE(rounding);
      CAPTURE(denormals);
      const std::string body = set_mode(0xc0 | rounding | denormals << 4) +
                               "v_add_f32 v64, v1, v2\n v_mul_f32 v65, v1, v2\n v_fma_f32 v66, v1, v2, v3\n"
                               "v_pk_mul_f32 v[68:69], v[2:3], v[2:3]\n v_max_f32 v67, v1, v2\n v_cmp_lt_f32 vcc, v1, v2\n s_nop 4\n "
                               "v_cndmask_b32 v70, 0, 1, vcc";
      for (const Pairs& set : pairs_of(interesting_floats(), 2, rounding * 4 + denormals)) {
        const Lanes64 third = each_lane([&](int i) { return set.b[static_cast<std::size_t>((i + 7) % 64)]; });
        const LaneResult r = run({.body = body, .inputs = {set.a, set.b, third}, .results = 7});
        REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
        for (std::size_t i = 0; i < 64; ++i) {
          const float a = flushed(as_float(set.a[i]), in), b = flushed(as_float(set.b[i]), in), c = flushed(as_float(third[i]), in);
          const auto same = [&](std::size_t k, float want) {
            CHECK_MESSAGE(same_float(r.v[k][i], as_bits(flushed(want, out))),
                          fmt::format("result {} of {:#x} {:#x} {:#x}: {:#x}, not {:#x}", k, set.a[i], set.b[i], third[i], r.v[k][i],
                                      as_bits(flushed(want, out))));
            ++cases;
          };
          same(0, zero_sum(a, b, to_single(sum(a, b), d), d));
          same(1, to_single({static_cast<double>(a) * b, 0}, d));
          const double p = static_cast<double>(a) * b;
          const float fused = to_single(sum(p, c), d);
          same(2, fused == 0 ? static_cast<float>(zero_sum(p, static_cast<double>(c), static_cast<double>(fused), d)) : fused);
          same(4, to_single({static_cast<double>(b) * b, 0}, d));
          if (!std::isnan(a) && !std::isnan(b) && a != b) same(3, std::max(a, b));
          CHECK(r.v[6][i] == (a < b ? 1U : 0U));
        }
      }
    }
  MESSAGE(fmt::format("{} results of f32 in all modes", cases));
}

TEST_CASE("MODE: f64 in every rounding and denormal mode") {
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      3.0,
                                      0.1,
                                      -1e-3,
                                      1.7976931348623157e308,
                                      4.9e-324,
                                      2.2250738585072014e-308,
                                      -2.2250738585072009e-308,
                                      INFINITY,
                                      1e17,
                                      1.0000000000000002};
  int cases = 0;
  for (u32 rounding = 0; rounding < 4; ++rounding)
    for (u32 denormals = 0; denormals < 4; ++denormals) {
      const auto d = static_cast<Direction>(rounding);
      const bool in = (denormals & 1) == 0, out = (denormals & 2) == 0;
      for (std::size_t turn = 0; turn < values.size(); turn += 4) {
        const auto left = [&](int i) { return values[static_cast<std::size_t>(i) % values.size()]; };
        const auto right = [&](int i) { return values[(turn + static_cast<std::size_t>(i) / values.size()) % values.size()]; };
        const auto words = [](auto f, int shift) { return each_lane([=](int i) { return static_cast<u32>(as_bits(f(i)) >> shift); }); };
        const LaneResult r = run({.body = set_mode(0x30 | rounding << 2 | denormals << 6) +
                                          "v_mov_b32 v10, v1\n v_mov_b32 v11, v2\n v_mov_b32 v12, v3\n v_mov_b32 v13, v4\n"
                                          "v_add_f64 v[64:65], v[10:11], v[12:13]\n v_mul_f64 v[66:67], v[10:11], v[12:13]",
                                  .inputs = {words(left, 0), words(left, 32), words(right, 0), words(right, 32)},
                                  .results = 4});
        for (int i = 0; i < 64; ++i) {
          const double a = flushed(left(i), in), b = flushed(right(i), in);
          const auto got = [&](std::size_t k) {
            return as_double(r.v[k][static_cast<std::size_t>(i)] | u64{r.v[k + 1][static_cast<std::size_t>(i)]} << 32);
          };
          const auto same = [&](double x, double want) {
            want = flushed(want, out);
            CHECK_MESSAGE((as_bits(x) == as_bits(want) || (std::isnan(x) && std::isnan(want))),
                          fmt::format("{} and {}, mode {:#x}: {}, not {}", a, b, rounding << 2 | denormals << 6, x, want));
            ++cases;
          };
          Exact s = sum(a, b);
          if (std::isinf(s.high) && std::isfinite(a) && std::isfinite(b)) // overflow
            s.high = d == zero || d == (s.high > 0 ? down : up) ? std::copysign(std::numeric_limits<double>::max(), s.high) : s.high;
          same(got(0), zero_sum(a, b, to_double(s, d), d));
          if (std::fabs(a * b) > 1e-290 || a == 0 || b == 0) { // below, the rest of a product is not a double
            Exact p = product(a, b);
            if (std::isinf(p.high) && std::isfinite(a) && std::isfinite(b))
              p.high = d == zero || d == (p.high > 0 ? down : up) ? std::copysign(std::numeric_limits<double>::max(), p.high) : p.high;
            same(got(2), to_double(p, d));
          }
        }
      }
    }
  MESSAGE(fmt::format("{} results of f64 in all modes", cases));
}

TEST_CASE("MODE: f16, alone and packed, in every rounding and denormal mode, saturating or not") {
  int cases = 0;
  for (u32 rounding = 0; rounding < 4; ++rounding)
    for (u32 denormals = 0; denormals < 4; ++denormals) {
      const auto d = static_cast<Direction>(rounding);
      const bool in = (denormals & 1) == 0, out = (denormals & 2) == 0, saturate = (rounding + denormals) % 2 == 1;
      const std::string body =
          set_mode(0x30 | rounding << 2 | denormals << 6) +
          fmt::format("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {}\n s_nop 1\n", saturate ? 1 : 0) +
          "v_add_f16 v64, v1, v2\n v_mul_f16 v65, v1, v2\n v_pk_fma_f16 v66, v1, v2, v3\n v_pk_add_f16 v67, v1, v2\n v_cvt_f16_f32 v68, v4";
      for (const Pairs& set : pairs_of(interesting_halves(), 2, rounding * 4 + denormals)) {
        const Lanes64 third = each_lane([&](int i) { return set.b[static_cast<std::size_t>((i + 5) % 64)]; });
        const Lanes64 single =
            floats([&](int i) { return std::ldexp(static_cast<float>(i * 37 % 64) + 0.37F, i % 40 - 26) * (i % 2 == 0 ? 1.0F : -1.0F); });
        const LaneResult r = run({.body = body, .inputs = {set.a, set.b, third, single}, .results = 5});
        REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
        const auto source = [&](u32 h) { return half_value(flush_half(h & 0xffffU, in)); };
        const auto check = [&](u32 got, double exact, const char* what) {
          const u32 want = flush_half(round_half(exact, d, saturate), out);
          CHECK_MESSAGE(same_half(got & 0xffffU, want),
                        fmt::format("{} {}, mode {:#x}: {:#x}, not {:#x}", what, exact, rounding << 2 | denormals << 6, got, want));
          ++cases;
        };
        for (std::size_t i = 0; i < 64; ++i) {
          check(r.v[0][i], zero_sum(source(set.a[i]), source(set.b[i]), source(set.a[i]) + source(set.b[i]), d), "sum");
          check(r.v[1][i], source(set.a[i]) * source(set.b[i]), "product");
          for (const u32 shift : {0U, 16U}) {
            const double a = source(set.a[i] >> shift), b = source(set.b[i] >> shift), c = source(third[i] >> shift);
            check(r.v[3][i] >> shift, zero_sum(a, b, a + b, d), "packed sum");
            const Exact e = sum(a * b, c);
            const double odd = e.low == 0 || (as_bits(e.high) & 1) != 0 ? e.high : std::nextafter(e.high, e.low > 0 ? INFINITY : -INFINITY);
            check(r.v[2][i] >> shift, zero_sum(a * b, c, odd, d), "packed fused product");
          }
          check(r.v[4][i], as_float(single[i]), "conversion of");
        }
      }
    }
  MESSAGE(fmt::format("{} results of f16 in all modes", cases));
}

TEST_CASE("MODE: parts of the register are written and read alone") {
  const LaneResult r = run(
      {.body =
           "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0\n s_nop 1\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 0xff\n s_nop 1\n"
           "s_getreg_b32 s40, hwreg(HW_REG_MODE, 0, 8)\n s_mov_b32 s42, 0x12345602\n s_setreg_b32 hwreg(HW_REG_MODE, 4, 3), s42\n s_nop 1\n"
           "s_getreg_b32 s41, hwreg(HW_REG_MODE, 0, 8)\n s_getreg_b32 s43, hwreg(HW_REG_MODE, 4, 2)\n s_nop 1\n"
           "v_mov_b32 v64, s40\n v_mov_b32 v65, s41\n v_mov_b32 v66, s43\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf0",
       .results = 3});
  REQUIRE(r.run.defects.empty());
  CHECK(r.v[0][0] == 0xfc);
  CHECK(r.v[1][0] == 0xac); // bits 6 to 4 are 010 now
  CHECK(r.v[2][0] == 2);
}

} // namespace mode_test
