// fp8 and bf8 conversion instructions of both flavours: all 65,536 f16 values to the nearest code and stochastically, saturating
// or not, and all 256 codes back.
#include "tests/exec/exact_float.h"
#include "tests/exec/lane_program.h"
#include "tests/exec/small_float_reference.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace fp8_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;

constexpr int inputs_a_run = 15;

// Inputs `first`, `first` + 1, ... as f32, one a lane and register.
double input(u32 first, int reg, std::size_t lane) {
  return half_value((first + static_cast<u32>(reg) * 64 + static_cast<u32>(lane)) % 65536);
}
u32 seed(u32 first, int reg, std::size_t lane) {
  return (first + static_cast<u32>(reg) * 64 + static_cast<u32>(lane)) * 2654435761U + 12345;
}

} // namespace

TEST_CASE("fp8 instructions: every f16 value, to nearest and stochastically, saturating or not") {
  int cases = 0, wrong = 0;
  for (const bool fnuz : {true, false})
    for (const bool saturate : {false, true}) {
      const char* arch = fnuz ? "gfx942" : "gfx950";
      const ReferenceFormat fp8 = fnuz ? fp8_fnuz_reference : fp8_reference, bf8 = fnuz ? bf8_fnuz_reference : bf8_reference;
      // v1.. hold the values, v16.. the random numbers; each value gives four results.
      std::string body =
          fmt::format("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), {}\n s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0xf\n s_nop 1\n",
                      saturate ? 1 : 0);
      for (int k = 0; k < inputs_a_run; ++k) {
        const int d = 64 + 4 * k;
        for (int r = 0; r < 4; ++r) body += fmt::format("v_mov_b32 v{}, 0\n", d + r);
        body += fmt::format("v_cvt_pk_fp8_f32 v{0}, v{4}, v{4}\n v_cvt_pk_bf8_f32 v{1}, v{4}, v{4}\n v_cvt_sr_fp8_f32 v{2}, v{4}, v{5}\n "
                            "v_cvt_sr_bf8_f32 v{3}, v{4}, v{5}\n",
                            d, d + 1, d + 2, d + 3, 1 + k, 16 + k);
      }
      for (u32 first = 0; first < 65536; first += 64 * inputs_a_run) {
        std::vector<Lanes64> in;
        for (int k = 0; k < inputs_a_run; ++k)
          in.push_back(floats([&](int i) { return static_cast<float>(input(first, k, static_cast<std::size_t>(i))); }));
        for (int k = 0; k < inputs_a_run; ++k) in.push_back(each_lane([&](int i) { return seed(first, k, static_cast<std::size_t>(i)); }));
        const LaneResult r = run({.body = body, .inputs = in, .results = 4 * inputs_a_run, .arch = arch});
        REQUIRE(r.run.defects.empty());
        for (int k = 0; k < inputs_a_run; ++k)
          for (std::size_t i = 0; i < 64; ++i) {
            const double x = input(first, k, i);
            const bool limit = saturate && std::isfinite(x);
            const u32 near8 = fp8.nearest(x, limit), near5 = bf8.nearest(x, limit), random = seed(first, k, i);
            const u32 want[4] = {near8 * 257, near5 * 257, fp8.stochastic(x, random, limit), bf8.stochastic(x, random, limit)};
            for (std::size_t n = 0; n < 4; ++n, ++cases) {
              const u32 got = r.v[4 * static_cast<std::size_t>(k) + n][i];
              const ReferenceFormat& f = n % 2 == 0 ? fp8 : bf8;
              const bool same = got == want[n] || (std::isnan(f.value(got & 0xffU)) && std::isnan(f.value(want[n] & 0xffU)));
              if (!same && ++wrong < 10)
                FAIL_CHECK(fmt::format("{} result {} of {}, random {:#x}: {:#x}, not {:#x}", arch, n, x, random, got, want[n]));
            }
          }
      }
    }
  CHECK(wrong == 0);
  MESSAGE(fmt::format("{} conversions of f16 values to fp8 and bf8", cases));
}

TEST_CASE("fp8 instructions: all 256 codes, in every byte, alone and in pairs") {
  int cases = 0;
  for (const bool fnuz : {true, false}) {
    const ReferenceFormat fp8 = fnuz ? fp8_fnuz_reference : fp8_reference, bf8 = fnuz ? bf8_fnuz_reference : bf8_reference;
    for (u32 base = 0; base < 256; base += 64) {
      const Lanes64 codes = each_lane([&](int i) {
        const u32 c = base + static_cast<u32>(i);
        return c | (c ^ 0x55U) << 8 | (255 - c) << 16 | (c * 7 % 256) << 24;
      });
      std::string body;
      for (int b = 0; b < 4; ++b)
        body += fmt::format("v_cvt_f32_fp8_sdwa v{}, v1 src0_sel:BYTE_{}\n v_cvt_f32_bf8_sdwa v{}, v1 src0_sel:BYTE_{}\n", 64 + b, b,
                            68 + b, b);
      body += "v_cvt_pk_f32_fp8 v[72:73], v1\n v_cvt_pk_f32_fp8_sdwa v[74:75], v1 src0_sel:WORD_1\n v_cvt_pk_f32_bf8 v[76:77], v1\n "
              "v_cvt_pk_f32_bf8_sdwa v[78:79], v1 src0_sel:WORD_1\n";
      const LaneResult r = run({.body = body, .inputs = {codes}, .results = 16, .arch = fnuz ? "gfx942" : "gfx950"});
      REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
      for (std::size_t i = 0; i < 64; ++i)
        for (std::size_t n = 0; n < 16; ++n, ++cases) {
          const bool is_bf8 = n % 8 >= 4; // four bytes alone, then the same four in two pairs
          const double want = (is_bf8 ? bf8 : fp8).value(codes[i] >> (8 * (n % 4)) & 0xffU);
          CHECK(same_float(r.v[n][i], as_bits(static_cast<float>(want))));
        }
    }
  }
  MESSAGE(fmt::format("{} conversions of codes to f32", cases));
}

} // namespace fp8_test
