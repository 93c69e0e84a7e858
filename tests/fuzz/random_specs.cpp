// Random specs through every stage: plan, schedule, emit, compile, ISA contract, execution, comparison with the reference.
// KILN_FUZZ_FIRST and KILN_FUZZ_COUNT choose the seeds; the normal run takes a small slice. A failing spec is shrunk
// before it is reported.
#include "gen/error.h"
#include "gen/spec/graph.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/shrink_spec.h"
#include "tests/fuzz/spec_generator.h"
#include "tests/numeric/check_kernel.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sstream>

namespace random_specs_tests {
using namespace kiln;

namespace {

std::optional<std::string> check(const KernelSpec& spec, const Target& to, std::uint64_t seed) {
  try {
    return testing::check_kernel(spec, to, seed, {.rows = static_cast<std::int64_t>(seed % 5), .special_values = seed % 7 == 0});
  } catch (const UserError& error) {
    // What a valid random spec may ask and not get: the memory of an input that is still needed, groups of very different sizes or wider
    // than a wave that reads single columns by index, far partners of groups, and of bools in memory; wide ranks beside another problem.
    if (error.fact.find(" is in place of ") != error.fact.npos || error.fact.find("it has groups of ") != error.fact.npos ||
        error.fact.find("are of different groups of ") != error.fact.npos ||
        error.fact.find("from memory, which is bool") != error.fact.npos || error.fact.find("has no room for others") != error.fact.npos)
      return {};
    return fmt::format("{}\nseed {} {}\n{}", error.what(), seed, to.arch(), to_text(spec));
  } catch (const std::exception& error) {
    return fmt::format("{}\nseed {} {}\n{}", error.what(), seed, to.arch(), to_text(spec));
  }
}

// What a failure is, without its numbers: the first line and those that say what was found. A spec that is smaller may fail in another way:
// LLVM leaves out loads of what is computed for nothing.
std::string kind_of(const std::string& failure) {
  std::string kind;
  std::istringstream lines(failure);
  for (std::string line; std::getline(lines, line);)
    if (kind.empty() || line.find("expected") != line.npos) kind += line + "\n";
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

// The same failure of the smallest spec that still fails.
std::string shrunk(const KernelSpec& spec, const Target& to, std::uint64_t seed, const std::string& failure) {
  const KernelSpec smallest = testing::shrink_spec(spec, [&](const KernelSpec& s) {
    const auto again = check(s, to, seed);
    return again && kind_of(*again) == kind_of(failure);
  });
  return check(smallest, to, seed).value_or("the failure does not come twice:\n" + to_text(spec));
}

void check_seeds(std::uint64_t first, std::uint64_t count, RandomSpecOptions options) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    options.fp8_e4m3 = to.fp8_e4m3(), options.fp8_e5m2 = to.fp8_e5m2();
    const KernelSpec spec = random_spec(seed, options);
    const auto failure = check(spec, to, seed);
    if (failure) FAIL_CHECK(shrunk(spec, to, seed, *failure));
    else CHECK(!failure);
  }
}

} // namespace

TEST_CASE("random specs") {
  const std::uint64_t first = testing::number_from("KILN_FUZZ_FIRST", 1), count = testing::number_from("KILN_FUZZ_COUNT", 100);
  MESSAGE("seeds ", first, " to ", first + count - 1);
  check_seeds(first, count, {.max_cols = 4096});
}

TEST_CASE("random specs of two problems") {
  const std::uint64_t first = testing::number_from("KILN_FUZZ_FIRST", 1), count = (testing::number_from("KILN_FUZZ_COUNT", 100) + 4) / 5;
  check_seeds(first, count, {.max_cols = 4096, .several_percent = 100});
}

TEST_CASE("a failing spec is shrunk to what fails") {
  // "Fails": it has a row_max of something that comes from an input by exp.
  const auto fails = [](const KernelSpec& spec) {
    for (const Expr& node : nodes_in_order(spec))
      if (node.op() == Op::row_max)
        for (const Expr& below : nodes_in_order(std::span(&node, 1)))
          if (below.op() == Op::exp) return true;
    return false;
  };
  const KernelSpec spec = parse_spec(R"(kernel k
dim rows
input x: f16[rows, 64]
input y: f32[64]
let a = exp(x * y + 2) - y
let b = row_max(abs(a) * 3)
output first: f16[rows, 64] = a / b + y
output second: f32[rows, 1] = row_sum(x)
output third: f16[rows, 64] = x + y
)");
  REQUIRE(fails(spec));
  CHECK(to_text(testing::shrink_spec(spec, fails)) ==
        "kernel k\ndim rows\ninput x: f16[rows, 64]\noutput first: f16[rows, 1] = row_max(exp(x))\n");
}

} // namespace random_specs_tests
