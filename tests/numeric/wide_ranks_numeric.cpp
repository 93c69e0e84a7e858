// Ranks of rows that several workgroups read, executed on both architectures: many ranks, wide rows, ties, few groups, the sampler.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "tests/numeric/check_on_both.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tuple>

namespace wide_ranks_numeric {
using namespace kiln;
using testing::check_on_both;

namespace {

KernelSpec ranked(DType type, const Dim& rows, std::int64_t cols, std::int64_t k) {
  const Expr x = input("x", type, {rows, cols}), other = input("other", f16, {rows, cols});
  const Expr top = row_top(x, k), chosen = pick(other, top);
  return KernelSpec("ranked")
      .output("column", i32, top)
      .output("value", f32, pick(x, top))
      .output("share", f32, row_cumsum(abs(chosen)) / row_sum(abs(chosen) + 1))
      .output("largest", i32, row_argmax(chosen));
}

} // namespace

TEST_CASE("the largest elements of wide rows, and many of narrow ones: i8 and f16 have many alike") {
  const Dim any = dynamic("rows"), few = dynamic("rows", 1, 4);
  for (const auto& [type, rows, cols, k] :
       {std::tuple(f16, any, 100, 17), std::tuple(i8, few, 5000, 256), std::tuple(f32, any, 1025, 1), std::tuple(bf16, few, 20000, 256),
        std::tuple(f16, few, 9999, 64), std::tuple(f32, few, 30000, 65)}) {
    CAPTURE(fmt::format("{} {} of {}", to_string(type), k, cols));
    check_on_both(ranked(type, rows, cols, k), {.rows = 2});
  }
}

TEST_CASE("infinities and NaN in wide rows, and rows of one number") {
  const Dim few = dynamic("rows", 1, 4);
  check_on_both(ranked(f16, few, 9000, 256), {.rows = 2, .special_values = true}, 7);
  const Expr x = input("x", f16, {few, 1}), wide = input("wide", f16, {few, 6000});
  check_on_both(KernelSpec("k").output("column", i32, row_top(wide, 40)).output("first", f32, row_max(pick(wide, row_top(wide, 40))) + x),
                {.rows = 3});
}

// What few groups have, many have, or none has: all are alike, NaN fills groups or leaves fewer numbers than ranks, and the largest lie
// side by side. Rows take turns in how they are found.
TEST_CASE("wide rows whose largest elements are hard to find") {
  constexpr std::int64_t cols = 20000, k = 100;
  const KernelSpec spec = ranked(f32, dynamic("rows", 1, 6), cols, k);
  Inputs inputs = random_inputs(spec, 3, {.dynamic_size = 6});
  Tensor& x = inputs.tensors.at("x");
  for (std::int64_t c = 0; c < cols; ++c) {
    x.set(c, NAN);
    x.set(cols + c, 1.5f);
    if (c / 64 % 5 != 0) x.set(2 * cols + c, NAN);
    if (c % 300 != 7) x.set(3 * cols + c, NAN); // 67 numbers
    if (c / 512 == 9) x.set(4 * cols + c, 1000.0f + static_cast<float>(c % 512));
    x.set(5 * cols + c, static_cast<float>(c % 64 == 63 ? c % 3 : c % 2));
  }
  for (const std::string_view arch : known_archs()) {
    const BuiltKernel built = build_kernel(spec, target(arch), own_process_options(process_environment()), {});
    const auto wrong = testing::check_orders(spec, built, inputs, {.count = 2});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

TEST_CASE("samplers: top-k, top-p and min-p of a vocabulary, and Gumbel noise of all of it") {
  for (const char* const name : {"sample_top_k_top_p", "sample_gumbel"})
    for (const auto& [cols, max_rows] : {std::pair(200, 0), std::pair(300, 0), std::pair(20000, 8)}) {
      CatalogOptions options;
      options.cols = cols, options.max_rows = max_rows, options.dtype = cols == 300 ? f32 : bf16;
      CAPTURE(fmt::format("{} {}", name, cols));
      check_on_both(catalog_spec(name, options), {.rows = 3});
    }
}

} // namespace wide_ranks_numeric
