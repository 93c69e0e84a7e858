// Attention executed on both architectures: types, heads, lengths, pages, splits, interleavings; NaN beyond lengths stays there.
#include "tests/attention/attention_cases.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;
using namespace kiln::testing;

namespace {

// Everything when KILN_LINT_ALL is set, else a slice.
bool all() { return std::getenv("KILN_LINT_ALL") != nullptr; }

void check(const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed = 1,
           const std::vector<std::string>& settings = {"workgroups=7"}) {
  const std::string wrong = wrong_attention(c, lengths, seed, settings);
  CHECK_MESSAGE(wrong.empty(), wrong);
}

} // namespace

TEST_CASE("lengths: none, one, odd, steps and their edges, all the room") {
  check({.log_sum_exp = true}, {0, 1, 31, 32, 33, 63, 64, 97, 160, 0, 5});
  check({}, {0, 0, 0});
  check({}, {});
}

TEST_CASE("every number of rows of q: groups and tokens") {
  for (const auto& [heads, kv_heads, tokens] : {std::tuple{3, 3, 1}, {16, 1, 1}, {10, 2, 3}, {32, 1, 2}, {24, 2, 4}}) {
    CAPTURE(heads * tokens / kv_heads);
    check({.heads = heads, .kv_heads = kv_heads, .tokens = tokens, .keys = 96, .log_sum_exp = true}, {4, 70, 96});
  }
}
