// Proves that a launch too long to execute is extrapolated from smaller ones, close to what it is predicted to take when executed whole,
// and says so; that what cannot be made smaller is refused with what to do; and that workgroups that stand for others end.
#include "gen/catalog/catalog.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/predict_kernel.h"
#include <doctest/doctest.h>
#include <fmt/ranges.h>

using namespace kiln;

TEST_CASE("a launch that is too long is extrapolated from smaller ones") {
  const Target to = target("mi300x");
  CatalogOptions o;
  o.heads = 8, o.kv_heads = 1, o.d = 128, o.length = 16384;
  const KernelSpec spec = catalog_spec("attention_decode", o);
  const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
  const auto predicted = [&](std::int64_t rows, std::uint64_t max_steps) {
    std::map<std::string, std::int64_t> sizes;
    for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = rows;
    return predict_kernel(spec, built.source, built.object, sizes, to.chip(), {.changes = false, .max_steps = max_steps});
  };
  const timing::Prediction whole = predicted(32, timing::max_recorded_steps), part = predicted(32, 3'000'000);
  CHECK(whole.extrapolated.empty());
  CHECK(part.extrapolated.find("32") != std::string::npos);
  CHECK(timing::to_text(part).find("extrapolated from launches of size") != std::string::npos);
  CHECK(part.workgroups == whole.workgroups);
  CHECK(part.microseconds == doctest::Approx(whole.microseconds).epsilon(0.2));
  CHECK(part.bytes == doctest::Approx(whole.bytes).epsilon(0.2));
  CHECK_THROWS_AS(predicted(32, 1000), timing::TooLong);
}

// 2 tokens have 16 experts, 32 all 64 of them: by tokens the launch would be four times as long.
TEST_CASE("a launch with experts is extrapolated by the matrices that it streams") {
  const Target to = target("mi300x");
  CatalogOptions o;
  o.dtype = bf16, o.m = 32, o.n = 1024, o.k = 1024;
  const KernelSpec spec = catalog_spec("grouped_gemm", o);
  const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
  const auto predicted = [&](std::uint64_t max_steps) {
    return predict_kernel(spec, built.source, built.object, {{"m", 32}}, to.chip(), {.changes = false, .max_steps = max_steps});
  };
  const timing::Prediction whole = predicted(timing::max_recorded_steps), part = predicted(2'000'000);
  CHECK(whole.extrapolated.empty());
  CHECK(part.extrapolated.find("a launch of size") != std::string::npos);
  CHECK(part.microseconds == doctest::Approx(whole.microseconds).epsilon(0.2));
  CHECK(part.bytes == doctest::Approx(whole.bytes).epsilon(0.2));
}

TEST_CASE("workgroups that stand for those of other XCDs, and wait for each other in a circle, go on") {
  const Target to = target("mi300x");
  CatalogOptions o;
  o.dtype = bf16, o.m = 8, o.n = 7168, o.k = 2304;
  const KernelSpec spec = catalog_spec("gemm_w4a16", o);
  const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()),
                                         {"tile_n=64", "loads=2", "stages=1", "workgroups=252"}); // nine parts for four tiles
  const timing::Prediction p = predict_kernel(spec, built.source, built.object, {{"m", 1}}, to.chip(), {.changes = false});
  CHECK(p.workgroups == 252);
  CHECK(p.microseconds < 50);
}

TEST_CASE("the workgroups of one XCD stand for all, and all are executed where what they publish is collected on another") {
  const Target to = target("mi355x");
  CatalogOptions o;
  o.dtype = bf16;
  const auto check = [&](const KernelSpec& spec, const std::vector<std::string>& overrides, std::int64_t m, bool one_is_enough) {
    CAPTURE(fmt::format("{} {}", spec.name(), fmt::join(overrides, " ")));
    const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()), overrides);
    const auto predicted = [&](bool one_xcd) {
      return predict_kernel(spec, built.source, built.object, {{"m", m}}, to.chip(), {.changes = false, .one_xcd = one_xcd});
    };
    const timing::Prediction all = predicted(false), one = predicted(true);
    CHECK(one.microseconds == doctest::Approx(all.microseconds).epsilon(0.03));
    CHECK(one.workgroups == all.workgroups);
    CHECK(one.bytes == doctest::Approx(all.bytes).epsilon(0.02));
    const timing::Record r = record_kernel(spec, built.source, built.object, {{"m", m}}, {.xcds = 8});
    CHECK(r.xcds == (one_is_enough ? 8 : 1));
    CHECK((r.recorded.size() < r.workgroups) == one_is_enough);
  };
  o.m = 64, o.n = 5120, o.k = 5120; // 32 workgroups of an XCD on 20 tiles
  check(catalog_spec("gemm", o), {"tile_n=32", "loads=2", "stages=4", "workgroups=256"}, 64, true);
  o.m = 128, o.n = 128, o.k = 2048; // a tile has workgroups of two XCDs
  check(catalog_spec("gemm_swiglu_quant", o), {"tile_n=32", "loads=1", "stages=1", "workgroups=64"}, 128, false);
  o.m = 4, o.dtype = f16; // a tile has the workgroups of two XCDs, and those of the second may collect all
  check(catalog_spec("gemm_w_mxfp4", o), {"tile_n=32", "loads=1", "stages=1", "workgroups=16"}, 4, false);
}

TEST_CASE("only the stream of a launch grows with its size") {
  timing::Prediction small, large;
  small.chip = large.chip = &timing::chip("mi300x");
  small.phases = {{"start", 1}, {"stream", 10}, {"exit", 2}};
  large.phases = {{"start", 1.5}, {"stream", 20}, {"exit", 1}};
  small.microseconds = 13, large.microseconds = 22.5;
  small.bytes = 1e6, large.bytes = 2e6;
  const timing::Prediction p = timing::extrapolate(small, large, 8, "two");
  CHECK(p.microseconds == doctest::Approx(1.5 + 100 + 1));
  CHECK(p.bytes == doctest::Approx(10e6));
  CHECK(p.low < p.microseconds);
  CHECK(p.rate_tbs == doctest::Approx(10e6 / 102.5 / 1e6));
}
