// gfx950's scaled conversions against formats by definition, for every mnemonic, choice of bytes and kind of scale.
#include "tests/exec/lane_program.h"
#include "tests/exec/small_float_reference.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>

namespace scaled_convert_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using Bits = std::vector<u32>; // registers of one lane

struct Named {
  const char* name;
  const ReferenceFormat& format;
};
const Named f32{"f32", f32_reference}, f16{"f16", f16_reference}, bf16{"bf16", bf16_reference}, fp8{"fp8", fp8_reference},
    bf8{"bf8", bf8_reference}, fp6{"fp6", fp6_reference}, bf6{"bf6", bf6_reference}, fp4{"fp4", fp4_reference};

u32 take(const Bits& words, int at, int width) {
  u32 r = 0;
  for (int b = 0; b < width; ++b) r |= (words[static_cast<std::size_t>((at + b) / 32)] >> ((at + b) % 32) & 1U) << b;
  return r;
}
void place(Bits& words, int at, int width, u32 code) {
  for (int b = 0; b < width; ++b) {
    u32& w = words[static_cast<std::size_t>((at + b) / 32)];
    w = (w & ~(1U << ((at + b) % 32))) | (code >> b & 1U) << ((at + b) % 32);
  }
}

struct Conversion {
  std::string mnemonic;
  const Named &from, &to;
  int count;
  bool stochastic = false, two_sources = false;
};

// Codes whose values, divided by the scale, cover the narrow format; some zeros, infinities and NaN.
u32 random_code(const ReferenceFormat& f, std::mt19937& random) {
  const auto any = [&](u32 n) { return static_cast<u32>(random() % n); };
  if (f.bits() <= 8) return any(1U << f.bits());
  if (any(16) == 0) return std::array{0U, f.sign(), f.infinity(), f.sign() + f.infinity(), f.nan(), 1U, f.largest()}[any(7)];
  const u32 exponent = static_cast<u32>(std::clamp(f.bias - 12 + static_cast<int>(any(22)), 0, (1 << f.exponent_bits) - 2));
  return (any(2) != 0 ? f.sign() : 0) + (exponent << f.mantissa_bits) + static_cast<u32>(random()) % (1U << f.mantissa_bits);
}

std::string registers(int first, int n) { return n == 1 ? fmt::format("v{}", first) : fmt::format("v[{}:{}]", first, first + n - 1); }
u32 next_random(u32 x) { return x * 2 ^ (x >= 0x80000000U ? 0xc5U : 0U); }

int check(const Conversion& c, u32 op_sel, u32 scale_kind) {
  std::mt19937 random(op_sel * 131 + scale_kind * 7 + static_cast<u32>(c.mnemonic.size()) * 1001 + static_cast<u32>(c.mnemonic.back()));
  const ReferenceFormat &from = c.from.format, &to = c.to.format;
  const int sources = c.two_sources ? 2 : 1, in_bits = c.count * from.bits() / sources, out_bits = c.count * to.bits(),
            in_words = std::max(1, in_bits / 32), out_words = std::max(1, out_bits / 32);
  std::vector<Lanes64> in(static_cast<std::size_t>(sources * in_words), Lanes64{});
  for (Lanes64& reg : in)
    for (u32& word : reg) {
      word = 0;
      for (int at = 0; at + from.bits() <= 32; at += from.bits()) word |= random_code(from, random) << at;
      if (from.bits() == 6) word = static_cast<u32>(random()); // codes cross registers
    }
  const Lanes64 seeds = each_lane([&](int) { return static_cast<u32>(random()); });
  // The scale: 1, powers of two whose sign and digits do not count, the smallest, and NaN.
  const Lanes64 scales = each_lane([&](int i) {
    const u32 exponent = scale_kind == 0 ? 127 : scale_kind == 1 ? 124 + static_cast<u32>(i) % 7 : scale_kind == 2 ? 0 : 255;
    return exponent << 23 | (scale_kind == 1 ? static_cast<u32>(random()) & 0x807fffffU : 0);
  });
  const Lanes64 old = each_lane([&](int) { return static_cast<u32>(random()); });
  std::string body;
  const auto move = [&](int to_reg, std::size_t from_reg) { body += fmt::format("v_mov_b32 v{}, v{}\n", to_reg, from_reg); };
  for (std::size_t w = 0; w < in.size(); ++w) move(128 + static_cast<int>(w), 1 + w);
  std::vector<Lanes64> inputs = in;
  inputs.push_back(seeds);
  inputs.push_back(scales);
  inputs.push_back(old);
  move(200, in.size() + 1);
  move(201, in.size() + 2);
  for (int w = 0; w < out_words; ++w) move(64 + w, in.size() + 3);
  body += fmt::format("{} {}, {}", c.mnemonic, registers(64, out_words), registers(128, in_words));
  if (c.two_sources) body += ", " + registers(128 + in_words, in_words);
  body += c.stochastic ? ", v200, v201" : ", v201";
  // op_sel is written with a bit for each operand and one for the destination; a byte of the destination takes bits 2 and 3.
  const int operands = out_bits == 8 ? 3 : 2 + (c.two_sources ? 1 : 0) + (c.stochastic ? 1 : 0);
  if (op_sel != 0) {
    body += " op_sel:[";
    for (int b = 0; b <= operands; ++b) body += fmt::format("{}{}", b == 0 ? "" : ",", b == operands ? op_sel >> 3 & 1 : op_sel >> b & 1);
    body += "]";
  }
  CAPTURE(body);
  const LaneResult r = run({.body = body + "\n s_nop 1", .inputs = inputs, .results = out_words, .arch = "gfx950"});
  REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
  const bool narrow = to.bits() < from.bits();
  const int in_at = in_bits == 8 ? static_cast<int>(8 * (op_sel & 3)) : in_bits == 16 ? static_cast<int>(16 * (op_sel & 1)) : 0;
  const int out_at = out_bits == 8 ? static_cast<int>(8 * (op_sel >> 2 & 3)) : out_bits == 16 ? static_cast<int>(16 * (op_sel >> 3)) : 0;
  int cases = 0;
  for (std::size_t lane = 0; lane < 64; ++lane) {
    Bits source, want(static_cast<std::size_t>(out_words), old[lane]), got;
    for (const Lanes64& reg : in) source.push_back(reg[lane]);
    for (const Lanes64& reg : r.v) got.push_back(reg[lane]);
    const u32 exponent = scales[lane] >> 23 & 0xffU;
    const double scale = exponent == 255 ? std::nan("") : std::ldexp(1.0, static_cast<int>(exponent) - 127);
    u32 seed = seeds[lane];
    for (int e = 0; e < c.count; ++e, seed = next_random(seed), ++cases) {
      const int at = c.two_sources ? e % 2 * 32 * in_words + e / 2 * from.bits() : e * from.bits() + in_at;
      const double x = from.value(take(source, at, from.bits())), y = narrow ? x / scale : x * scale;
      const u32 code = c.stochastic ? to.stochastic(y, seed) : to.nearest(y), here = take(got, out_at + e * to.bits(), to.bits());
      const bool both_nan = std::isnan(to.value(code)) && std::isnan(to.value(here));
      place(want, out_at + e * to.bits(), to.bits(), both_nan ? here : code);
    }
    CHECK_MESSAGE(got == want, fmt::format("lane {}: {:#x}, not {:#x}; source {:#x}, scale {:#x}, random {:#x}", lane, got[0], want[0],
                                           source[0], scales[lane], seeds[lane]));
  }
  return cases;
}

std::vector<Conversion> all_conversions() {
  std::vector<Conversion> all;
  const auto name = [](const char* shape, const Named& to, const Named& from) {
    return fmt::format("v_cvt_scalef32_{}{}_{}", shape, to.name, from.name);
  };
  for (const Named* small : {&fp8, &bf8, &fp4}) {
    all.push_back({name("pk_", *small, f32), f32, *small, 2, false, true});
    for (const Named* wide : {&f16, &bf16}) all.push_back({name("pk_", *small, *wide), *wide, *small, 2});
    for (const Named* wide : {&f32, &f16, &bf16}) {
      all.push_back({name("pk_", *wide, *small), *small, *wide, 2});
      all.push_back({name(small == &fp4 ? "sr_pk_" : "sr_", *small, *wide), *wide, *small, small == &fp4 ? 2 : 1, true});
    }
    if (small != &fp4)
      for (const Named* wide : {&f32, &f16}) all.push_back({name("", *wide, *small), *small, *wide, 1});
  }
  for (const Named* small : {&fp6, &bf6}) {
    all.push_back({name("2xpk16_", *small, f32), f32, *small, 32, false, true});
    for (const Named* wide : {&f16, &bf16}) all.push_back({name("pk32_", *small, *wide), *wide, *small, 32});
    for (const Named* wide : {&f32, &f16, &bf16}) {
      all.push_back({name("pk32_", *wide, *small), *small, *wide, 32});
      all.push_back({name("sr_pk32_", *small, *wide), *wide, *small, 32, true});
    }
  }
  return all;
}

} // namespace

TEST_CASE("scaled conversions: every mnemonic, byte and half, ordinary and extreme scales") {
  int cases = 0;
  const std::vector<Conversion> all = all_conversions();
  CHECK(all.size() == 49);
  for (const Conversion& c : all) {
    const int in_bits = c.count * c.from.format.bits() / (c.two_sources ? 2 : 1), out_bits = c.count * c.to.format.bits();
    // The bits of op_sel that name a part of a source or of the destination.
    const u32 meant = (in_bits == 8 ? 3U : in_bits == 16 ? 1U : 0U) | (out_bits == 8 ? 12U : out_bits == 16 ? 8U : 0U);
    for (u32 op_sel = 0; op_sel < 16; ++op_sel)
      if ((op_sel & ~meant) == 0)
        for (u32 scale = 0; scale < 4; ++scale) cases += check(c, op_sel, scale);
  }
  MESSAGE(fmt::format("{} scaled conversions", cases));
}

TEST_CASE("stochastic rounding to f16 and bf16, in either half") {
  int cases = 0;
  std::mt19937 random(77);
  for (int turn = 0; turn < 12; ++turn) {
    const Lanes64 x = each_lane([&](int) { return random_code(f32_reference, random); }),
                  seeds = each_lane([&](int) { return static_cast<u32>(random()); });
    const LaneResult r =
        run({.body = "v_mov_b32 v64, -1\n v_mov_b32 v65, -1\n v_cvt_sr_f16_f32 v64, v1, v2\n v_cvt_sr_f16_f32 v64, -v1, v2 op_sel:[0,0,1]\n"
                     "v_cvt_sr_bf16_f32 v65, v1, v2\n v_cvt_sr_bf16_f32 v65, |v1|, v2 op_sel:[0,0,1]\n s_nop 1",
             .inputs = {x, seeds},
             .results = 2,
             .arch = "gfx950"});
    REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
    for (std::size_t i = 0; i < 64; ++i) {
      const double v = f32_reference.value(x[i]);
      const auto same = [&](u32 got, double value, const ReferenceFormat& f) {
        const u32 want = f.stochastic(value, seeds[i]);
        CHECK_MESSAGE((got == want || (std::isnan(f.value(got)) && std::isnan(value))),
                      fmt::format("{} with {:#x}: {:#x}, not {:#x}", value, seeds[i], got, want));
        ++cases;
      };
      same(r.v[0][i] & 0xffffU, v, f16_reference);
      same(r.v[0][i] >> 16, -v, f16_reference);
      same(r.v[1][i] & 0xffffU, v, bf16_reference);
      same(r.v[1][i] >> 16, std::fabs(v), bf16_reference);
    }
  }
  MESSAGE(fmt::format("{} stochastic roundings to 16 bits", cases));
}

} // namespace scaled_convert_test
