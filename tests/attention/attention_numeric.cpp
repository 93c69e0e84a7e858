// Attention executed: types, heads, lengths, pages, splits, interleavings; NaN beyond lengths stays there.
#include "tests/attention/attention_cases.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace attention_numeric {
using namespace kiln;
using namespace kiln::testing;

namespace {

struct Types {
  DType q, cache;
};
std::vector<Types> types_of(const Target& to) {
  return {{f16, f16}, {bf16, bf16},          {f16, to.fp8_e4m3()}, {bf16, to.fp8_e5m2()},
          {f16, i8},  {bf16, to.fp8_e4m3()}, {f16, to.fp8_e5m2()}, {bf16, i8}};
}

} // namespace

TEST_CASE("lengths: none, one, odd, steps and their edges, all the room") {
  check_everywhere({.log_sum_exp = true}, {0, 1, 31, 32, 33, 63, 64, 97, 160, 0, 5});
}

TEST_CASE("no keys at all, and no sequences") {
  const AttentionCase c;
  const KernelSpec spec = attention_spec(c);
  const BuiltKernel built = build_attention(spec, target("gfx950"));
  for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{0, 0, 0}, std::vector<std::int64_t>{}}) {
    const std::string wrong = wrong_attention(spec, built, attention_inputs(spec, c, lengths, 1));
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("every number of rows of q: groups and tokens") {
  std::uint64_t seed = 10;
  for (const auto& [heads, kv_heads, tokens] : {std::tuple{3, 3, 1}, {10, 2, 3}, {24, 1, 2}, {32, 2, 4}}) {
    CAPTURE(heads * tokens / kv_heads);
    check_somewhere({.heads = heads, .kv_heads = kv_heads, .tokens = tokens, .keys = 96, .log_sum_exp = true}, {4, 70, 96}, ++seed);
  }
}

TEST_CASE("every group from 1 to 16 heads") {
  for (std::int64_t group = 1; group <= 16; ++group)
    if (compares_all() || group == 11)
      check_somewhere({.heads = group, .kv_heads = 1, .d = 64, .keys = 96}, {1, 70, 96}, static_cast<std::uint64_t>(200 + group));
}

TEST_CASE("every type of the cache, every d") {
  constexpr std::int64_t sizes[] = {64, 80, 96, 128, 192, 256};
  for (const std::string_view arch : known_archs()) {
    std::uint64_t seed = arch == "gfx942" ? 20 : 21;
    for (const Types t : types_of(target(arch))) {
      ++seed; // in a slice a type has one d, and one architecture
      for (const std::int64_t d : sizes)
        if (compares_all() || (seed % 2 && d == sizes[seed / 2 % std::size(sizes)])) {
          CAPTURE(d);
          check_on(arch, {.heads = 4, .kv_heads = 2, .d = d, .type = t.q, .cache = t.cache, .keys = 96}, {70, 33}, seed);
        }
    }
  }
}

TEST_CASE("pages: of one tile, of several steps, lengths at their edges, 8-bit caches") {
  check_somewhere({.page = 16, .keys = 160, .log_sum_exp = true}, {0, 1, 16, 17, 48, 160, 97}, 31);
  check_somewhere({.type = bf16, .cache = i8, .page = 48, .keys = 192}, {47, 48, 49, 192, 96}, 32);
  if (compares_all()) check_everywhere({.tokens = 3, .d = 64, .page = 64, .keys = 256}, {3, 64, 65, 256, 128}, 33);
}

TEST_CASE("lengths up to 8192: one long sequence beside many short ones, on all CUs") {
  if (compares_all())
    check_everywhere({.heads = 2, .kv_heads = 1, .d = 64, .keys = 8192},
                     {1, 2, 15, 16, 17, 100, 511, 512, 513, 1000, 2047, 4096, 8000, 8191, 8192}, 41);
  std::vector<std::int64_t> lengths(compares_all() ? 32 : 12, 3);
  lengths[5] = 8191;
  check_somewhere({.heads = 2, .kv_heads = 1, .d = 64, .keys = 8192}, lengths, 42, {});
}

TEST_CASE("the same bits whatever the interleaving, with heads that many workgroups share") {
  const AttentionCase c{.heads = 8, .kv_heads = 2, .d = 64, .keys = 256, .log_sum_exp = true};
  const KernelSpec spec = attention_spec(c);
  const Inputs inputs = attention_inputs(spec, c, {256, 31, 0, 150}, 51);
  for (const std::string_view arch : known_archs()) {
    const std::string wrong = wrong_attention(spec, build_attention(spec, target(arch), {"workgroups=9"}), inputs, 20);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

} // namespace attention_numeric
