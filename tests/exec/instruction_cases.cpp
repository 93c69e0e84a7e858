// Running tables of instructions.
#include "tests/exec/instruction_cases.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace kiln::exec::testing {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// v1 to v7 of one set: the two operands, the same a few lanes further, and noise.
std::vector<Lanes64> inputs_of(const Pairs& set) {
  const auto turned = [](const Lanes64& x, std::size_t by) {
    return each_lane([&](int i) { return x[(static_cast<std::size_t>(i) + by) % 64]; });
  };
  const auto noise = [](u32 seed) { return each_lane([=](int i) { return (static_cast<u32>(i) + seed) * 2654435761U; }); };
  return {set.a, set.b, turned(set.a, 1), turned(set.b, 3), turned(set.a, 11), noise(5), noise(77)};
}
std::array<u32, 8> lane_inputs(const std::vector<Lanes64>& in, std::size_t lane) {
  std::array<u32, 8> v{};
  for (std::size_t k = 0; k < in.size(); ++k) v[k + 1] = in[k][lane];
  return v;
}

std::string substitute(std::string text, const std::string& single, const std::string& pair) {
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
    const bool two = at + 1 < text.size() && text[at + 1] == '@';
    text.replace(at, two ? 2 : 1, two ? pair : single);
  }
  return text;
}

bool same_double(u64 a, u64 b) { return a == b || (std::isnan(as_double(a)) && std::isnan(as_double(b))); }
bool equal(Compare compare, u64 got, u64 want) {
  const u32 low = static_cast<u32>(got), high = static_cast<u32>(got >> 32), want_low = static_cast<u32>(want),
            want_high = static_cast<u32>(want >> 32);
  switch (compare) {
  case Compare::word: return low == want_low;
  case Compare::half_word: return (low & 0xffffU) == (want_low & 0xffffU);
  case Compare::two_words: return got == want;
  case Compare::f32: return same_float(low, want_low);
  case Compare::f16: return same_half(low & 0xffffU, want_low & 0xffffU) && low >> 16 == want_low >> 16;
  case Compare::two_f16: return same_half(low & 0xffffU, want_low & 0xffffU) && same_half(low >> 16, want_low >> 16);
  case Compare::f64: return same_double(got, want);
  case Compare::f32_ulp:
    return same_float(low, want_low) || (low >> 31 == want_low >> 31 && low - want_low + 1 <= 2 && !std::isnan(as_float(low)));
  case Compare::f16_ulp: return same_half(low & 0xffffU, want_low & 0xffffU) || ((low ^ want_low) < 0x8000U && low - want_low + 1 <= 2);
  case Compare::f16_number: return same_half(low & 0xffffU, want_low & 0xffffU) || ((low | want_low) & 0x7fffU) == 0;
  case Compare::f64_quotient: return same_double(got, want) || (std::fabs(as_double(want)) < 0x1p-1022 && got - want + 1 <= 2);
  case Compare::two_f32: return same_float(low, want_low) && same_float(high, want_high);
  }
  return false;
}

std::string describe(const std::array<u32, 8>& in) {
  return fmt::format("{:#x} {:#x} {:#x} {:#x} {:#x}, before {:#x} {:#x}", in[1], in[2], in[3], in[4], in[5], in[6], in[7]);
}

} // namespace

int check_vector(std::span<const VectorCase> cases, const std::vector<Pairs>& sets, const char* arch) {
  constexpr std::size_t at_once = 32;
  int checked = 0;
  for (std::size_t first = 0; first < cases.size(); first += at_once) {
    const auto some = cases.subspan(first, std::min(at_once, cases.size() - first));
    std::string body;
    for (std::size_t k = 0; k < some.size(); ++k) {
      const std::size_t d = 64 + 2 * k;
      body += fmt::format("v_cmp_lt_u32 vcc, v3, v4\n v_mov_b32 v{}, v6\n v_mov_b32 v{}, v7\n s_nop 4\n {}\n", d, d + 1,
                          substitute(some[k].text, fmt::format("v{}", d), fmt::format("v[{}:{}]", d, d + 1)));
    }
    for (const Pairs& set : sets) {
      const std::vector<Lanes64> in = inputs_of(set);
      const LaneResult r = run({.body = body, .inputs = in, .results = static_cast<int>(2 * some.size()), .arch = arch});
      REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
      for (std::size_t k = 0; k < some.size(); ++k)
        for (std::size_t lane = 0; lane < 64; ++lane, ++checked) {
          const auto v = lane_inputs(in, lane);
          const u64 got = r.v[2 * k][lane] | u64{r.v[2 * k + 1][lane]} << 32, want = some[k].expected(v.data());
          if (!equal(some[k].compare, got, want))
            FAIL_CHECK(fmt::format("{} {} of {}: {:#x}, not {:#x}", arch, some[k].text, describe(v), got, want));
        }
    }
  }
  CHECK(checked > 0);
  return checked;
}

int check_scalar(std::span<const ScalarCase> cases, const std::vector<Pairs>& sets, const char* arch) {
  constexpr std::size_t at_once = 21; // three result registers each
  int checked = 0;
  for (std::size_t first = 0; first < cases.size(); first += at_once) {
    const auto some = cases.subspan(first, std::min(at_once, cases.size() - first));
    // One lane's inputs a turn.
    std::string body = "s_mov_b32 s60, 0\n";
    for (std::size_t r = 0; r < 3 * some.size(); ++r) body += fmt::format("v_mov_b32 v{}, 0\n", 64 + r);
    body += "again:\n s_mov_b32 m0, s60\n s_nop 4\n";
    for (int k = 1; k <= 7; ++k) body += fmt::format("v_readlane_b32 s{}, v{}, m0\n", 20 + k, k);
    for (std::size_t k = 0; k < some.size(); ++k) {
      body += fmt::format("s_mov_b32 s40, s26\n s_mov_b32 s41, s27\n s_bitcmp1_b32 s25, 0\n {}\n s_cselect_b32 s42, 1, 0\n",
                          substitute(some[k].text, "s40", "s[40:41]"));
      for (std::size_t w = 0; w < 3; ++w) body += fmt::format("v_writelane_b32 v{}, s{}, m0\n", 64 + 3 * k + w, 40 + w);
    }
    body += "s_add_u32 s60, s60, 1\n s_cmp_lt_u32 s60, 64\n s_cbranch_scc1 again\n";
    for (const Pairs& set : sets) {
      const std::vector<Lanes64> in = inputs_of(set);
      const LaneResult r = run({.body = body, .inputs = in, .results = static_cast<int>(3 * some.size()), .arch = arch});
      REQUIRE_MESSAGE(r.run.defects.empty(), to_text(r.run.defects.empty() ? Defect{} : r.run.defects[0]));
      for (std::size_t k = 0; k < some.size(); ++k)
        for (std::size_t lane = 0; lane < 64; ++lane, ++checked) {
          const auto v = lane_inputs(in, lane);
          const ScalarResult want = some[k].expected(v.data());
          const u64 got = r.v[3 * k][lane] | u64{some[k].wide ? r.v[3 * k + 1][lane] : 0} << 32;
          const bool scc = r.v[3 * k + 2][lane] != 0;
          if (got != want.value || scc != want.scc)
            FAIL_CHECK(fmt::format("{} {} of {}: {:#x} SCC {}, not {:#x} SCC {}", arch, some[k].text, describe(v), got, scc, want.value,
                                   want.scc));
        }
    }
  }
  CHECK(checked > 0);
  return checked;
}

} // namespace kiln::exec::testing
