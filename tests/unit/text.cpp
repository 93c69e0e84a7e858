// The canonical text: that it reads well, parses back, and does not depend on how a program spelled the spec.
#include "gen/catalog/catalog.h"
#include "gen/graph.h"
#include "gen/math.h"
#include "gen/random_spec.h"
#include "gen/validate.h"
#include <doctest/doctest.h>

using namespace kiln;

TEST_CASE("the text of add_rmsnorm_quant") {
  const KernelSpec spec = catalog_spec("add_rmsnorm_quant", {.cols = 16384, .fp8 = e4m3fnuz, .in_place = true});
  CHECK(to_text(spec) == R"(kernel add_rmsnorm_quant
dim rows
input x: f16[rows, 16384]
input residual: f16[rows, 16384]
input weight: f16[16384]
input scale: f32[]
let t1 = cast(f16, x + residual)
output residual_out: f16[rows, 16384] = t1 in_place_of residual
output q: e4m3fnuz[rows, 16384] = t1 * rsqrt(row_mean(t1 * t1) + 1e-06) * weight / scale
)");
}

TEST_CASE("every catalogue entry parses back") {
  for (const CatalogEntry& entry : catalog())
    for (const std::int64_t cols : {1, 100, 128, 129, 16384})
      for (const DType dtype : {f32, f16, bf16}) {
        CAPTURE(entry.name);
        CAPTURE(cols);
        const KernelSpec spec = entry.build({.cols = cols, .dtype = dtype});
        validate(spec);
        CHECK(iteration_space(spec) == Shape{dynamic("rows"), cols});
        const std::string text = to_text(spec);
        const KernelSpec again = parse_spec(text);
        CHECK(to_text(again) == text);
        CHECK(again == spec);
      }
}

TEST_CASE("random specs are valid and parse back") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    const KernelSpec spec = random_spec(seed);
    const std::string text = to_text(spec);
    CAPTURE(text);
    REQUIRE_NOTHROW(validate(spec));
    const KernelSpec again = parse_spec(text);
    REQUIRE(to_text(again) == text);
    REQUIRE_NOTHROW(validate(again));
  }
}
