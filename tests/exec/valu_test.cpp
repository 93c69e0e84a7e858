// Vector arithmetic against formulas that are written another way than the executor's.
#include "tests/exec/lane_program.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace valu_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

i64 sext(u32 x, int bits) { return static_cast<i64>(static_cast<u64>(x) << (64 - bits)) >> (64 - bits); }

// Runs NAME v64, v1, v2 [, v3] over the sets; v3 is v1 rotated by a lane.
template <class Expected, class Same>
void check(const std::string& name, int operands, const std::vector<Pairs>& sets, Expected expected, Same same, const char* arch = "gfx942",
           const char* suffix = "") {
  CAPTURE(name);
  for (const Pairs& set : sets) {
    const Lanes64 c = each_lane([&](int i) { return set.a[static_cast<std::size_t>((i + 1) % 64)]; });
    const std::string body = name + (operands == 1 ? " v64, v1" : operands == 2 ? " v64, v1, v2" : " v64, v1, v2, v3") + suffix;
    const LaneResult r = run({.body = body, .inputs = {set.a, set.b, c}, .arch = arch});
    REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
    for (std::size_t i = 0; i < 64; ++i) {
      const u32 want = expected(set.a[i], set.b[i], c[i]);
      CHECK_MESSAGE(same(r.v[0][i], want),
                    fmt::format("{}: {:#x} {:#x} {:#x} gave {:#x}, not {:#x}", name, set.a[i], set.b[i], c[i], r.v[0][i], want));
    }
  }
}
bool equal(u32 a, u32 b) { return a == b; }

// Correct rounding through long double, which holds sums and products of floats with enough bits to spare.
u32 rounded(long double exact) { return as_bits(static_cast<float>(exact)); }
float f(u32 x) { return as_float(x); }
float half_value(u32 h) { return decode_small(f16_format, h & 0xffffU); }
u32 half_of(double exact) { return encode_small(f16_format, exact, Rounding::nearest_even, false); }

} // namespace

TEST_CASE("single precision: sums, products, fused multiply-add") {
  const auto sets = pairs_of(interesting_floats(), 2);
  check("v_add_f32", 2, sets, [](u32 a, u32 b, u32) { return rounded(static_cast<long double>(f(a)) + f(b)); }, same_float);
  check("v_sub_f32", 2, sets, [](u32 a, u32 b, u32) { return rounded(static_cast<long double>(f(a)) - f(b)); }, same_float);
  check("v_subrev_f32", 2, sets, [](u32 a, u32 b, u32) { return rounded(static_cast<long double>(f(b)) - f(a)); }, same_float);
  check("v_mul_f32", 2, sets, [](u32 a, u32 b, u32) { return rounded(static_cast<long double>(f(a)) * f(b)); }, same_float);
  // Products of floats are exact in long double (48 of 64 bits), the sum nearly: compare within 1 ulp.
  check(
      "v_fma_f32", 3, sets, [](u32 a, u32 b, u32 c) { return rounded(static_cast<long double>(f(a)) * f(b) + f(c)); },
      [](u32 got, u32 want) { return same_float(got, want) || std::abs(static_cast<i64>(got) - static_cast<i64>(want)) <= 1; });
}

TEST_CASE("single precision: minimum, maximum, median order -0 below +0 and pass over NaN") {
  const auto sets = pairs_of(interesting_floats(), 1);
  const auto key = [](u32 x) { return static_cast<i64>(x & 0x80000000U ? -static_cast<i64>(x & 0x7fffffffU) - 1 : static_cast<i64>(x)); };
  const auto nan = [](u32 x) { return (x & 0x7fffffffU) > 0x7f800000U; };
  const auto numbers = [=](u32 a, u32 b, bool first) { return nan(a) ? b : nan(b) ? a : first ? a : b; };
  const auto quieting = [=](u32 a, u32 b, bool first) { // MODE.IEEE, as kernels run: a signalling NaN comes out quiet
    for (const u32 x : {a, b})
      if (nan(x) && (x & 0x400000U) == 0) return x | 0x400000U;
    return numbers(a, b, first);
  };
  const auto low = [=](u32 a, u32 b) { return quieting(a, b, key(a) < key(b)); };
  const auto high = [=](u32 a, u32 b) { return quieting(a, b, key(a) >= key(b)); };
  const auto low_number = [=](u32 a, u32 b) { return numbers(a, b, key(a) < key(b)); };
  check("v_min_f32", 2, sets, [=](u32 a, u32 b, u32) { return low(a, b); }, same_float);
  check("v_max_f32", 2, sets, [=](u32 a, u32 b, u32) { return high(a, b); }, same_float);
  check("v_min3_f32", 3, sets, [=](u32 a, u32 b, u32 c) { return low(low(a, b), c); }, same_float);
  check("v_max3_f32", 3, sets, [=](u32 a, u32 b, u32 c) { return high(high(a, b), c); }, same_float);
  check(
      "v_med3_f32", 3, sets,
      [=](u32 a, u32 b, u32 c) {
        if (nan(a) || nan(b) || nan(c)) return low_number(low_number(a, b), c);
        std::array<u32, 3> sorted{a, b, c};
        std::sort(sorted.begin(), sorted.end(), [=](u32 x, u32 y) { return key(x) < key(y); });
        return sorted[1];
      },
      [](u32 got, u32 want) { return same_float(got, want) || f(got) == f(want); }); // the manual compares zeros as equal
}

TEST_CASE("single precision: rounding to integers and fractions") {
  const auto sets = pairs_of(interesting_floats(), 2);
  check("v_floor_f32", 1, sets, [](u32 a, u32, u32) { return rounded(floorl(f(a))); }, same_float);
  check("v_ceil_f32", 1, sets, [](u32 a, u32, u32) { return rounded(ceill(f(a))); }, same_float);
  check("v_trunc_f32", 1, sets, [](u32 a, u32, u32) { return rounded(truncl(f(a))); }, same_float);
  check("v_rndne_f32", 1, sets, [](u32 a, u32, u32) { return rounded(rintl(f(a))); }, same_float);
  check(
      "v_ldexp_f32", 2, sets,
      [](u32 a, u32 b, u32) {
        const i32 e = static_cast<i32>(b) > 600 ? 600 : static_cast<i32>(b) < -600 ? -600 : static_cast<i32>(b);
        return rounded(ldexpl(f(a), e));
      },
      same_float);
}

TEST_CASE("transcendentals stay within 1 ulp and flush denormals") {
  const Lanes64 x = floats([](int i) { return std::ldexp(1.0F + static_cast<float>(i) / 64.0F, i / 3 - 10); });
  const auto within = [&](const char* name, auto exact) {
    const LaneResult r = run({.body = fmt::format("{} v64, v1\n s_nop 1", name), .inputs = {x}});
    for (std::size_t i = 0; i < 64; ++i) {
      const long double want = exact(static_cast<long double>(f(x[i])));
      const float got = f(r.v[0][i]);
      const long double ulp = std::ldexp(1.0L, std::ilogb(want == 0 ? 1e-30L : want) - 23);
      CHECK_MESSAGE(std::fabs(got - want) <= ulp, fmt::format("{}({}) gave {}", name, f(x[i]), got));
    }
  };
  within("v_rcp_f32", [](long double v) { return 1 / v; });
  within("v_rsq_f32", [](long double v) { return 1 / sqrtl(v); });
  within("v_sqrt_f32", [](long double v) { return sqrtl(v); });
  within("v_log_f32", [](long double v) { return log2l(v); });
  const Lanes64 small = floats([](int i) { return -126.0F + static_cast<float>(i) * 3.75F; });
  const LaneResult r = run({.body = "v_exp_f32 v64, v1\n v_rcp_f32 v65, v2",
                            .inputs = {small, each_lane([](int i) { return static_cast<u32>(i + 1); })},
                            .results = 2});
  for (std::size_t i = 0; i < 64; ++i) {
    const double want = std::exp2(static_cast<double>(f(small[i])));
    CHECK(std::fabs(f(r.v[0][i]) - want) <= std::ldexp(want, -23));
    CHECK(std::isinf(f(r.v[1][i]))); // the reciprocal of a denormal
  }
}

TEST_CASE("half precision, alone and packed") {
  const auto sets = pairs_of(interesting_halves(), 2);
  check("v_add_f16", 2, sets, [](u32 a, u32 b, u32) { return half_of(double{half_value(a)} + half_value(b)); }, same_half);
  check("v_mul_f16", 2, sets, [](u32 a, u32 b, u32) { return half_of(double{half_value(a)} * half_value(b)); }, same_half);
  const auto packed = [](auto op) {
    return [op](u32 a, u32 b, u32 c) { return half_of(op(a, b, c)) | half_of(op(a >> 16, b >> 16, c >> 16)) << 16; };
  };
  const auto same_pair = [](u32 a, u32 b) { return same_half(a & 0xffffU, b & 0xffffU) && same_half(a >> 16, b >> 16); };
  check("v_pk_add_f16", 2, sets, packed([](u32 a, u32 b, u32) { return double{half_value(a)} + half_value(b); }), same_pair);
  check("v_pk_mul_f16", 2, sets, packed([](u32 a, u32 b, u32) { return double{half_value(a)} * half_value(b); }), same_pair);
  // The sum of a product and a half needs up to 80 bits: double rounds it, which must not show.
  check("v_pk_fma_f16", 3, sets, packed([](u32 a, u32 b, u32 c) {
          return static_cast<double>(static_cast<long double>(half_value(a)) * half_value(b) + half_value(c));
        }),
        same_pair);
}

TEST_CASE("integers: shifts, fields, products") {
  const auto sets = pairs_of(interesting_integers(), 1);
  check("v_add_u32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>((u64{a} + b) % (1ULL << 32)); }, equal);
  check("v_sub_u32", 2, sets, [](u32 a, u32 b, u32) { return a + ~b + 1; }, equal);
  check("v_lshlrev_b32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(u64{b} * (1ULL << (a % 32))); }, equal);
  check("v_lshrrev_b32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(b / (1ULL << (a % 32))); }, equal);
  check("v_ashrrev_i32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(sext(b, 32) >> (a % 32)); }, equal);
  check("v_mul_u32_u24", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(u64{a % (1U << 24)} * (b % (1U << 24))); }, equal);
  check("v_mul_i32_i24", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(sext(a, 24) * sext(b, 24)); }, equal);
  check("v_mul_hi_u32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>((static_cast<unsigned __int128>(a) * b) >> 32); }, equal);
  check("v_mul_hi_i32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>((sext(a, 32) * sext(b, 32)) >> 32); }, equal);
  check("v_mul_lo_u32", 2, sets, [](u32 a, u32 b, u32) { return static_cast<u32>(u64{a} * b); }, equal);
  check("v_bfe_u32", 3, sets, [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} >> (b % 32)) & ((1ULL << (c % 32)) - 1)); }, equal);
  check(
      "v_bfe_i32", 3, sets,
      [](u32 a, u32 b, u32 c) {
        const int width = static_cast<int>(c % 32);
        return width == 0 ? 0U : static_cast<u32>(sext(static_cast<u32>(sext(a, 32) >> (b % 32)), width));
      },
      equal);
  check("v_alignbit_b32", 3, sets, [](u32 a, u32 b, u32 c) { return static_cast<u32>(((u64{a} << 32) + b) >> (c % 32)); }, equal);
  check(
      "v_perm_b32", 3, sets,
      [](u32 a, u32 b, u32 c) {
        u32 r = 0;
        for (int k = 3; k >= 0; --k) {
          const u32 s = c >> (8 * k) & 255;
          const u32 word = s < 4 ? b : a;
          u32 byte = s >= 13 ? 255 : s == 12 ? 0 : word >> (8 * (s & 3)) & 255;
          if (s >= 8 && s < 12) byte = ((s < 10 ? b : a) >> ((s & 1) != 0 ? 31 : 15) & 1) * 255;
          r = r << 8 | byte;
        }
        return r;
      },
      equal);
}

TEST_CASE("integers: three operands") {
  const auto sets = pairs_of(interesting_integers(), 1, 7);
  check("v_bfi_b32", 3, sets, [](u32 a, u32 b, u32 c) { return c ^ (a & (b ^ c)); }, equal);
  check("v_and_or_b32", 3, sets, [](u32 a, u32 b, u32 c) { return ~(~(a & b) & ~c); }, equal);
  check("v_lshl_add_u32", 3, sets, [](u32 a, u32 b, u32 c) { return static_cast<u32>(u64{a} * (1ULL << (b % 32)) + c); }, equal);
  check("v_add3_u32", 3, sets, [](u32 a, u32 b, u32 c) { return static_cast<u32>(u64{a} + b + c); }, equal);
  check(
      "v_med3_i32", 3, sets,
      [](u32 a, u32 b, u32 c) {
        std::array<i32, 3> s{static_cast<i32>(a), static_cast<i32>(b), static_cast<i32>(c)};
        std::sort(s.begin(), s.end());
        return static_cast<u32>(s[1]);
      },
      equal);
  check("v_mad_u32_u24", 3, sets, [](u32 a, u32 b, u32 c) { return static_cast<u32>(u64{a % (1U << 24)} * (b % (1U << 24)) + c); }, equal);
  check(
      "v_sad_u8", 3, sets,
      [](u32 a, u32 b, u32 c) {
        for (int k = 0; k < 4; ++k)
          c += static_cast<u32>(std::abs(static_cast<int>(a >> (8 * k) & 255) - static_cast<int>(b >> (8 * k) & 255)));
        return c;
      },
      equal);
  check("v_bitop3_b32", 3, sets, [](u32 a, u32 b, u32 c) { return (b & c) | (c & a) | (a & b); }, equal, "gfx950", " bitop3:0xe8");
}

TEST_CASE("packed 16-bit integers and dot products") {
  const auto sets = pairs_of(interesting_integers(), 1, 3);
  const auto halves = [](auto op) {
    return [op](u32 a, u32 b, u32) {
      return (static_cast<u32>(op(a & 0xffffU, b & 0xffffU)) & 0xffffU) | static_cast<u32>(op(a >> 16, b >> 16)) << 16;
    };
  };
  check("v_pk_add_u16", 2, sets, halves([](u32 a, u32 b) { return a + b; }), equal);
  check("v_pk_mul_lo_u16", 2, sets, halves([](u32 a, u32 b) { return a * b; }), equal);
  check("v_pk_max_i16", 2, sets, halves([](u32 a, u32 b) { return std::max(sext(a, 16), sext(b, 16)); }), equal);
  check("v_pk_lshlrev_b16", 2, sets, halves([](u32 a, u32 b) { return b << (a % 16); }), equal);
  check(
      "v_dot4_i32_i8", 3, sets,
      [](u32 a, u32 b, u32 c) {
        i64 sum = sext(c, 32);
        for (int k = 0; k < 32; k += 8) sum += sext(a >> k & 255, 8) * sext(b >> k & 255, 8);
        return static_cast<u32>(sum);
      },
      equal);
  check(
      "v_dot8_u32_u4", 3, sets,
      [](u32 a, u32 b, u32 c) {
        u64 sum = c;
        for (int k = 0; k < 32; k += 4) sum += u64{a >> k & 15} * (b >> k & 15);
        return static_cast<u32>(sum);
      },
      equal);
}

} // namespace valu_test
