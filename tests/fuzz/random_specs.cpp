// Random specs through every stage: plan, schedule, emit, compile, ISA contract, execution, comparison with the reference.
// KILN_FUZZ_FIRST and KILN_FUZZ_COUNT choose the seeds; the normal run takes a small slice. A failing spec is shrunk by
// dropping outputs before it is reported.
#include "gen/error.h"
#include "tests/numeric/check_kernel.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace kiln;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::optional<std::string> check(const KernelSpec& spec, const Target& to, std::uint64_t seed) {
  try {
    return testing::check_kernel(spec, to, seed, {.rows = static_cast<std::int64_t>(seed % 5), .special_values = seed % 7 == 0});
  } catch (const UserError& error) {
    // What a valid random spec may ask and not get: the memory of an input that is still needed, and groups of very
    // different sizes.
    if (error.fact.find(" is in place of ") != error.fact.npos || error.fact.find("it has groups of ") != error.fact.npos) return {};
    return fmt::format("{}\nseed {} {}\n{}", error.what(), seed, to.arch(), to_text(spec));
  } catch (const std::exception& error) {
    return fmt::format("{}\nseed {} {}\n{}", error.what(), seed, to.arch(), to_text(spec));
  }
}

bool is_valid(const KernelSpec& spec) {
  try {
    validate(spec);
    return true;
  } catch (const UserError&) { // an output in place of an input that only a dropped one used
    return false;
  }
}

// The same failure with fewer outputs, as far as that goes.
std::string shrunk(KernelSpec spec, std::string failure, const Target& to, std::uint64_t seed) {
  for (std::size_t drop = 0; drop < spec.outputs().size() && spec.outputs().size() > 1;) {
    KernelSpec smaller(spec.name());
    for (std::size_t i = 0; i < spec.outputs().size(); ++i) {
      const Output& o = spec.outputs()[i];
      if (i != drop) smaller.output(o.name, o.dtype, o.value, {.in_place_of = o.in_place_of, .layout = o.layout});
    }
    if (const auto still = is_valid(smaller) ? check(smaller, to, seed) : std::nullopt) {
      spec = smaller;
      failure = *still;
      drop = 0;
    } else {
      ++drop;
    }
  }
  return failure;
}

} // namespace

TEST_CASE("random specs") {
  const std::uint64_t first = number_from("KILN_FUZZ_FIRST", 1), count = number_from("KILN_FUZZ_COUNT", 150);
  MESSAGE("seeds ", first, " to ", first + count - 1);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Target to = target(known_archs()[seed % known_archs().size()]);
    const KernelSpec spec = random_spec(seed, {.fp8_e4m3 = to.fp8_e4m3(), .fp8_e5m2 = to.fp8_e5m2(), .max_cols = 4096});
    const auto failure = check(spec, to, seed);
    if (failure) FAIL_CHECK(shrunk(spec, *failure, to, seed));
    else CHECK(!failure);
  }
}
