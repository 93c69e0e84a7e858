// Ranks and running sums in the reference: values, bounds and text.
#include "gen/reference/evaluate_bounds.h"
#include "gen/spec/math.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

using Numbers = std::vector<float>;

Numbers evaluated(const Expr& value, std::vector<std::int64_t> shape, const Numbers& x) {
  Tensor tensor(f32, std::move(shape));
  for (std::size_t i = 0; i < x.size(); ++i) tensor.set(static_cast<std::int64_t>(i), x[i]);
  const Outputs outputs = evaluate(KernelSpec("k").output("y", f32, value), {{{"x", tensor}}, {}});
  Numbers result;
  for (std::int64_t i = 0; i < outputs.at("y").size(); ++i) result.push_back(outputs.at("y").at(i));
  return result;
}

const Dim lines = dynamic("rows");
Expr row_of_five() { return input("x", f32, {lines, 5}); }

} // namespace

TEST_CASE("the largest come first, of those alike the lowest column, NaN as minus infinity") {
  const Expr x = row_of_five();
  CHECK(evaluated(row_top(x, 3), {2, 5}, {1, 7, 7, -2, 8, 0, -0.0f, -1, 0, -3}) == Numbers{4, 1, 2, 0, 1, 3});
  CHECK(evaluated(row_top(x, 5), {1, 5}, {NAN, 1, -INFINITY, INFINITY, NAN}) == Numbers{3, 1, 0, 2, 4});
  CHECK(evaluated(pick(x * 2, row_top(-x, 2)), {1, 5}, {5, 1, 3, 2, 4}) == Numbers{2, 4});
  CHECK(evaluated(row_sum(pick(x, row_top(x, 2))), {1, 5}, {5, 1, 3, 2, 4}) == Numbers{9});
}

TEST_CASE("running sums and log-sum-exp") {
  const Expr x = row_of_five();
  CHECK(evaluated(row_cumsum(x), {2, 5}, {1, 2, 3, 4, 5, 1, 1, INFINITY, 1, 1}) ==
        Numbers{1, 3, 6, 10, 15, 1, 2, INFINITY, INFINITY, INFINITY});
  CHECK(evaluated(row_logsumexp(x), {1, 5}, Numbers(5, -INFINITY))[0] == -INFINITY);
  CHECK(evaluated(row_logsumexp(x), {1, 5}, {-INFINITY, 2, -INFINITY, 2, -INFINITY})[0] == doctest::Approx(2 + std::log(2.0)));
}

TEST_CASE("bounds of ranks: certain columns, and those that several may have") {
  const std::vector<Range> certain = top_columns(std::vector<Range>{{1, 1}, {5, 6}, {3, 4}}, 3);
  CHECK(certain == std::vector<Range>{{1, 1}, {2, 2}, {0, 0}});
  const std::vector<Range> alike = top_columns(std::vector<Range>{{2, 2}, {2, 2}, {2, 2}}, 2);
  CHECK(alike == std::vector<Range>{{0, 0}, {1, 1}});
  const std::vector<Range> open = top_columns(std::vector<Range>{{1, 3}, {2, 4}, {0, 0}}, 3);
  CHECK(open == std::vector<Range>{{0, 1}, {0, 1}, {2, 2}});
  const std::vector<Range> nan = top_columns(std::vector<Range>{{1, 1, true}, {0, 0}}, 1);
  CHECK(nan == std::vector<Range>{{0, 1}});
}

TEST_CASE("sums of integer products have one value") {
  const std::vector<double> a{3, -2, 5}, b{7, 8, 1}, c{0.5, 1, 1};
  CHECK(product_range({.a = a, .b = b}, 3) == Range::exactly(10));
  CHECK(product_range({.a = a, .b = c}, 3).lo < product_range({.a = a, .b = c}, 3).hi);
}

TEST_CASE("ranks and running sums have a text") {
  const std::string text = R"(kernel k
dim rows
input x: f16[rows, 64]
let t1 = row_top(x, 4)
let t2 = pick(x, t1)
output y: f32[rows, 4] = t2 / row_sum(t2)
output columns_of: i32[rows, 4] = t1
output sums: f32[rows, 64] = row_cumsum(x)
)";
  CHECK(to_text(parse_spec(text)) == text);
}
