// Ranks, running sums and rows at the end of a product, executed on both architectures.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_on_both.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tuple>

namespace ranks_numeric {
using namespace kiln;
using testing::check_on_both;

namespace {

const Dim tokens = dynamic("tokens");

// f16 and i8 have many elements alike.
KernelSpec ranked(DType type, std::int64_t cols, std::int64_t k) {
  const Expr x = input("x", type, {tokens, cols}), other = input("other", f16, {cols});
  const Expr top = row_top(x, k), chosen = pick(x * other, top);
  return KernelSpec("ranked")
      .output("column", i32, top)
      .output("value", f32, pick(x, top))
      .output("share", f32, chosen / row_sum(abs(chosen) + 1));
}

} // namespace

TEST_CASE("the largest elements of rows of every width, ties to the lower column, infinities and NaN") {
  for (const auto& [type, cols, k] :
       {std::tuple(i8, 1, 1), std::tuple(f16, 2, 2), std::tuple(f16, 60, 16), std::tuple(bf16, 64, 1), std::tuple(f32, 127, 8),
        std::tuple(i8, 256, 8), std::tuple(f16, 1000, 3), std::tuple(f32, 1024, 16)}) {
    CAPTURE(fmt::format("{} {} of {}", to_string(type), k, cols));
    check_on_both(ranked(type, cols, k), {.rows = 5});
    if (cols == 60 || cols == 1024) check_on_both(ranked(type, cols, k), {.rows = 6, .special_values = true}, 7);
  }
}

TEST_CASE("ranks of numbers that share a byte: a lane has two of them at least") {
  const Expr x = input("x", e2m1, {tokens, 64});
  check_on_both(KernelSpec("k").output("top", i32, row_top(x, 4)).output("most", f32, row_max(pick(x, row_top(x, 4)))), {.rows = 3});
}

TEST_CASE("ranks of what reductions and groups gave, and reductions of ranks") {
  const Expr x = input("x", f16, {tokens, 4, 96});
  const Expr p = exp(x - row_max(x)), best = group_max(x, 32);
  const Expr top = row_top(p / row_sum(p) + ungroup(best, 32, 96), 5), v = pick(x, top);
  check_on_both(KernelSpec("k")
                    .output("a", f16, v - row_mean(v))
                    .output("b", f32, row_argmax(-v) + row_absmax(v) * row_min(v))
                    .output("y", f16, x * row_max(v)),
                {.rows = 3});
  check_on_both(KernelSpec("k").output("one", f16, pick(x, row_top(x, 1))).output("y", f16, x - row_sum(pick(abs(x), row_top(x, 1)))),
                {.rows = 3});
}

TEST_CASE("the column of the largest of one rank is 0, and reads what it is computed from") {
  const Expr x = input("x", f16, {dynamic("rows"), 200}), bias = input("bias", f32, {dynamic("rows"), 1});
  check_on_both(KernelSpec("k").output("column", f32, row_argmax(pick(x, row_top(x, 1)) + bias * scalar("alpha"))), {.rows = 3});
}

TEST_CASE("running sums of rows of one lane, one wave, many chunks and ends within a lane; and their use in a second pass") {
  for (const auto& [type, cols] :
       {std::pair(f32, 1), std::pair(f16, 7), std::pair(f16, 1000), std::pair(bf16, 4099), std::pair(f32, 20000)}) {
    CAPTURE(cols);
    const Expr x = input("x", type, {tokens, cols}), sums = row_cumsum(abs(x));
    check_on_both(KernelSpec("k").output("sums", f32, sums).output("share", f16, sums / (row_sum(abs(x)) + 1)), {.rows = 5});
  }
}

// Waves have parts of a row that are whole vectors, and take turns in other rows.
TEST_CASE("running sums by several waves: of others, of what is reduced, of rows of every residency and number of waves") {
  for (const auto& [type, cols] : {std::pair(f16, 8192), std::pair(f32, 2050), std::pair(bf16, 5000)}) {
    const Expr x = input("x", type, {tokens, cols}), y = input("y", f32, {tokens, cols});
    const Expr sums = row_cumsum(abs(x) + 1), twice = row_cumsum(row_cumsum(x * y));
    const KernelSpec spec = KernelSpec("k").output("share", f32, sums / row_max(sums)).output("twice", f32, twice + row_cumsum(abs(y)));
    for (const char* const threads : {"threads_per_row=64", "threads_per_row=256", "threads_per_row=1024"})
      for (const char* const residency : {"residency=reload", "residency=lds"}) {
        if ((cols > 2050 || threads == std::string("threads_per_row=1024")) && residency == std::string("residency=lds"))
          continue; // too much
        CAPTURE(fmt::format("{} {} {}", cols, threads, residency));
        check_on_both(spec, {.rows = 3, .settings = {threads, residency, "prefetch_depth=1"}});
      }
  }
  const Expr x = input("x", f16, {tokens, 3000});
  check_on_both(KernelSpec("k").output("y", f16, row_cumsum(x)), {.rows = 4, .special_values = true}, 7);
  const Expr few = partner(input("few", f16, {2, 4096}), 2048); // workgroups share rows of which nothing is reduced, but no running sum
  check_on_both(KernelSpec("k").output("y", f16, row_cumsum(few)).output("z", f16, few), {});
}

TEST_CASE("log-sum-exp: of minus infinities, of infinities, of large numbers") {
  const Expr x = input("x", f32, {tokens, 100});
  const KernelSpec spec = KernelSpec("k").output("y", f32, row_logsumexp(x));
  check_on_both(spec, {.rows = 5});
  Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 4});
  for (std::int64_t i = 0; i < 100; ++i) {
    inputs.tensors.at("x").set(i, -INFINITY);
    inputs.tensors.at("x").set(100 + i, i == 3 ? INFINITY : 1.0f);
    inputs.tensors.at("x").set(200 + i, 3e38f);
    inputs.tensors.at("x").set(300 + i, i == 5 ? NAN : 1.0f);
  }
  for (const std::string_view arch : known_archs()) {
    CompileOptions compile = own_process_options(process_environment());
    const BuiltKernel built = build_kernel(spec, target(arch), compile, {});
    const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
    for (const Outputs& outputs : {done.outputs, evaluate(spec, inputs)}) {
      const Tensor& y = outputs.at("y");
      CHECK(y.at(0) == -INFINITY);
      CHECK(y.at(1) == INFINITY);
      CHECK(y.at(2) == doctest::Approx(3e38f));
      CHECK(std::isnan(y.at(3)));
    }
  }
}

// Small integers, so that products are exact and columns certain.
TEST_CASE("the router: one launch, every number of experts, 20 interleavings give the same bits") {
  for (const std::string_view arch : known_archs())
    for (const auto& [m, n, k, sigmoid] :
         {std::tuple(4, 64, 2048, false), std::tuple(16, 256, 1024, true), std::tuple(13, 100, 512, true)}) {
      CAPTURE(fmt::format("{} m {} n {} k {}", arch, m, n, k));
      CatalogOptions options{.dtype = bf16, .top = 6, .sigmoid = sigmoid, .m = m, .n = n, .k = k};
      const KernelSpec spec = catalog_spec("router", options);
      CompileOptions compile = own_process_options(process_environment());
      compile.warnings_as_errors = true;
      const BuiltKernel built = build_kernel(spec, target(arch), compile, {});
      Inputs inputs = random_inputs(spec, 2, {.dynamic_size = m});
      for (const char* name : {"a", "b"}) {
        Tensor& matrix = inputs.tensors.at(name);
        for (std::int64_t i = 0; i < matrix.size(); ++i) matrix.set(i, std::nearbyint(matrix.at(i) * (sigmoid ? 0.2f : 0.7f)));
      }
      const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
      std::size_t certain = 0;
      for (const Range& column : bounds.at("experts").ranges) certain += column.lo == column.hi ? 1 : 0;
      CHECK(certain * 10 >= bounds.at("experts").ranges.size() * 8); // else this would prove little
      const auto wrong = testing::check_orders(spec, built, inputs, {.count = n == 256 ? 20U : 3U});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
}

TEST_CASE("reductions of other products' rows: a norm behind a projection, gate and partner, one value a row") {
  const Expr a = input("a", f16, {dynamic("m", 1, 8), 256}), b = input("b", f16, {384, 256});
  const Expr both = matmul_nt(a, b), y = columns(both, 0, 192) * sigmoid(columns(both, 192, 192));
  check_on_both(
      KernelSpec("k").output("y", f16, y * rsqrt(row_mean(y * y) + 1e-3) * input("w", f16, {192})).output("most", f32, row_absmax(y)),
      {.rows = 7});
  check_on_both(KernelSpec("k").output("q", f16, y).output("s", f32, input("bias", f32, {dynamic("m", 1, 8), 1}) * 2), {.rows = 5});
}

TEST_CASE("products of 65 to 128 rows") {
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    for (const auto& [type, m, n, k] : {std::tuple(f16, 65, 96, 520), std::tuple(to.fp8(), 100, 161, 336), std::tuple(bf16, 128, 64, 512),
                                        std::tuple(i8, 128, 80, 1024)}) {
      CAPTURE(fmt::format("{} {} m {}", arch, to_string(type), m));
      const Expr a = input("a", type, {dynamic("m", 1, m), k}), b = input("b", type, {n, k});
      const auto wrong = testing::check_kernel(KernelSpec("gemm").output("c", f32, matmul_nt(a, b)), to, 3, {.rows = m});
      CHECK_MESSAGE(!wrong, wrong.value_or(""));
    }
  }
}

} // namespace ranks_numeric
