// Rows in the order of their elements, executed on both architectures: in LDS and in the workspace, ties, NaN, what is computed of ranks.
#include "gen/spec/math.h"
#include "tests/numeric/check_on_both.h"
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <tuple>

namespace row_sort_numeric {
using namespace kiln;
using testing::check_on_both;

namespace {

const Dim few = dynamic("rows", 1, 4);

KernelSpec sorted(DType type, std::int64_t cols, std::int64_t k, Layout layout = Layout::contiguous) {
  const Expr x = input("x", type, {few, cols}, layout), other = input("other", f16, {cols});
  const Expr top = row_top(x, k);
  return KernelSpec("sorted")
      .output("column", i32, top)
      .output("value", f32, pick(x, top))
      .output("of_row", f32, input("factor", f32, {few, 1}) * 2)
      .output("scaled", bf16, pick(other, top) * input("factor", f32, {few, 1}) + pick(x, top));
}

} // namespace

TEST_CASE("rows of every type and digit, all of their elements or some, with many alike") {
  for (const auto& [type, cols, k] : {std::tuple(f32, 257, 257), std::tuple(f16, 1000, 300), std::tuple(bf16, 3001, 2999),
                                      std::tuple(i8, 1025, 1025), std::tuple(f32, 5000, 4000)}) {
    CAPTURE(fmt::format("{} {} of {}", to_string(type), k, cols));
    check_on_both(sorted(type, cols, k, cols == 1000 ? Layout::strided : Layout::contiguous), {.rows = 3});
  }
}

TEST_CASE("every number of waves, and the workspace in place of LDS") {
  for (const char* const waves : {"waves=1", "waves=2", "waves=8"})
    check_on_both(sorted(f16, 700, 700), {.rows = 2, .settings = {waves, waves == std::string("waves=2") ? "in_lds=0" : "in_lds=1"}});
}

TEST_CASE("infinities, NaN and zeros of both signs have their order; one column after the other where all are alike") {
  check_on_both(sorted(f16, 600, 600), {.rows = 3, .special_values = true}, 7);
  const KernelSpec spec = sorted(f32, 1500, 1500);
  Inputs inputs = random_inputs(spec, 3, {.dynamic_size = 4});
  Tensor& x = inputs.tensors.at("x");
  for (std::int64_t c = 0; c < 1500; ++c) {
    x.set(c, NAN);
    x.set(1500 + c, c % 2 ? -0.0f : 0.0f);
    x.set(3000 + c, c % 700 == 3 ? NAN : -INFINITY);
  }
  for (const std::string_view arch : known_archs()) {
    const BuiltKernel built = build_kernel(spec, target(arch), own_process_options(process_environment()), {});
    const auto wrong = testing::check_orders(spec, built, inputs, {.count = 2});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

TEST_CASE("few ranks of rows that are too wide to be searched") {
  check_on_both(sorted(bf16, 262145, 5), {.rows = 1});
  check_on_both(sorted(f32, 262147, 1), {.rows = 1});
}

} // namespace row_sort_numeric
