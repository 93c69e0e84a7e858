// evaluate_bounds: that the reference lies within for random specs, and that the bounds are no wider than they have to be.
#include "gen/catalog/catalog.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "tests/fuzz/spec_generator.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

void check_reference_within(const KernelSpec& spec, const Inputs& inputs) {
  const auto mismatch = find_mismatch(evaluate(spec, inputs), evaluate_bounds(spec, inputs));
  INFO(to_text(spec));
  REQUIRE_MESSAGE(!mismatch, to_text(*mismatch));
}

} // namespace

TEST_CASE("the reference lies within the bounds of random specs") {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const KernelSpec spec = random_spec(seed, {.max_cols = 257});
    check_reference_within(spec, random_inputs(spec, seed));
    check_reference_within(spec, random_inputs(spec, seed + 1, {.values = InputValues::special}));
    check_reference_within(spec, random_inputs(spec, seed + 2, {.values = InputValues::largest}));
  }
}

TEST_CASE("scores of attention that are too large for f32 to tell apart give bounds that allow anything") {
  const KernelSpec spec = catalog_spec("attention_decode", {.d = 128, .length = 64});
  const Inputs inputs = random_inputs(spec, 1, {.values = InputValues::largest});
  check_reference_within(spec, inputs);
  const auto bounds = evaluate_bounds(spec, inputs);
  for (const Range& range : bounds.at("o").ranges) CHECK((range.has_numbers() || range.maybe_nan));
}

TEST_CASE("a wrong element is found, wherever it is") {
  const KernelSpec spec = catalog_spec("rmsnorm", {.cols = 64});
  const Inputs inputs = random_inputs(spec, 1);
  const auto bounds = evaluate_bounds(spec, inputs);
  for (const std::int64_t index : {0, 63, 64, 191}) {
    Outputs outputs = evaluate(spec, inputs);
    Tensor& y = outputs.at("y");
    y.set(index, y.at(index) * 1.01f + 0.01f);
    const auto mismatch = find_mismatch(outputs, bounds);
    REQUIRE(mismatch);
    CHECK(mismatch->output == "y");
    CHECK(mismatch->index == index);
    CHECK(mismatch->count == 1);
    y.set(index, NAN);
    CHECK(find_mismatch(outputs, bounds));
  }
}

TEST_CASE("bounds are tight: most rounded results have one admissible value") {
  for (const CatalogEntry& entry : catalog()) {
    if (entry.is.gemm || entry.is.attention || entry.is.experts) continue; // long sums in any order
    if (entry.name == "softmax_temperature") continue;                     // exponents of any size
    if (entry.is.matrices) continue;                                       // intervals double with every normalisation
    if (entry.is.state) continue;                                          // one long sum of what another one has left
    if (entry.name == "lse_merge") continue;                               // a logarithm may be near 0
    const KernelSpec spec = entry.build({.cols = entry.is.ranked ? 256 : 4096});
    const Inputs inputs = random_inputs(spec, 1);
    for (const auto& [name, bounds] : evaluate_bounds(spec, inputs, {.addition_depth = 40})) {
      CAPTURE(entry.name);
      CAPTURE(name);
      double undecided = 0, widest = 0;
      for (const Range& range : bounds.ranges) {
        CHECK(!range.maybe_nan);
        undecided += range.lo == range.hi ? 0 : 1;
        widest = std::max(widest, (range.hi - range.lo) / std::max(std::fabs(range.hi), 1e-30));
      }
      // f32 scales keep their last places open; f16 and fp8 values only where they lie near the middle of two.
      if (bounds.dtype == f32) CHECK(widest < 4e-6);
      else CHECK(undecided / static_cast<double>(bounds.ranges.size()) < 0.15);
    }
  }
}

TEST_CASE("the depth of a sum's tree narrows its bound") {
  const Expr x = input("x", f32, {dynamic("rows"), 4096});
  const KernelSpec spec = KernelSpec("k").output("y", f32, row_sum(x));
  const Inputs inputs = random_inputs(spec, 3);
  const auto width = [&](const BoundsOptions& options) {
    const Range range = evaluate_bounds(spec, inputs, options).at("y").ranges[0];
    return range.hi - range.lo;
  };
  const double any_order = width({}), shallow = width({.addition_depth = 40});
  CHECK(shallow > 0);
  CHECK(any_order > 50 * shallow);
  CHECK(any_order < 200 * shallow);
}
