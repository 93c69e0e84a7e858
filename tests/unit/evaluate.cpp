// evaluate: the DSL's meaning, against results worked out by hand or by plain loops.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/reference/random.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/math.h"
#include "tests/fuzz/spec_generator.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

using namespace kiln;

namespace {

const Dim rows = dynamic("rows");
constexpr float inf = std::numeric_limits<float>::infinity();

Tensor tensor(DType type, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  Tensor result(type, std::move(shape));
  REQUIRE(result.size() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) result.set(static_cast<std::int64_t>(i), values[i]);
  return result;
}

std::vector<float> values(const Tensor& t) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < t.size(); ++i) result.push_back(t.at(i));
  return result;
}

std::vector<float> result(const KernelSpec& spec, const Inputs& inputs) { return values(evaluate(spec, inputs).at("y")); }

// The rows of a tensor as f64, for the plain loops below.
std::vector<std::vector<double>> rows_of(const Tensor& t) {
  const std::int64_t cols = t.shape().back();
  std::vector<std::vector<double>> out(static_cast<std::size_t>(t.size() / cols));
  for (std::int64_t i = 0; i < t.size(); ++i) out[static_cast<std::size_t>(i / cols)].push_back(static_cast<double>(t.at(i)));
  return out;
}

void check_near(const Tensor& actual, const std::vector<std::vector<double>>& expected, double relative, double absolute) {
  const auto got = rows_of(actual);
  REQUIRE(got.size() == expected.size());
  for (std::size_t r = 0; r < got.size(); ++r)
    for (std::size_t c = 0; c < got[r].size(); ++c)
      if (std::fabs(got[r][c] - expected[r][c]) > relative * std::fabs(expected[r][c]) + absolute)
        FAIL("row " << r << " column " << c << ": " << got[r][c] << " instead of " << expected[r][c]);
}

} // namespace

TEST_CASE("broadcasts of rows, columns, scalars") {
  const Expr full = input("full", f32, {rows, 3}), row = input("per_row", f32, {3}), column = input("column", f32, {rows, 1}),
             one = input("one", f32, {});
  const KernelSpec spec = KernelSpec("k").output("y", f32, full + row * 10 + column * 100 + one * scalar("s"));
  const Inputs inputs{{{"full", tensor(f32, {2, 3}, {1, 2, 3, 4, 5, 6})},
                       {"per_row", tensor(f32, {3}, {1, 2, 3})},
                       {"column", tensor(f32, {2, 1}, {1, 2})},
                       {"one", tensor(f32, {}, {2})}},
                      {{"s", 500}}};
  CHECK(result(spec, inputs) == std::vector<float>{1111, 1122, 1133, 1214, 1225, 1236});
}

TEST_CASE("any rank, and middle dimensions that broadcast") {
  const Expr a = input("a", i32, {2, 1, 2}), b = input("b", u8, {3, 1});
  const KernelSpec spec = KernelSpec("k").output("y", i32, a * b);
  const Inputs inputs{{{"a", tensor(i32, {2, 1, 2}, {1, 2, 3, 4})}, {"b", tensor(u8, {3, 1}, {1, 10, 100})}}, {}};
  CHECK(result(spec, inputs) == std::vector<float>{1, 2, 10, 20, 100, 200, 3, 4, 30, 40, 300, 400});
}

TEST_CASE("row and group reductions, the last group partial") {
  const Expr x = input("x", f32, {rows, 5});
  const Inputs inputs{{{"x", tensor(f32, {2, 5}, {1, -7, 3, 4, 5, 0, 0, -1, 0, 2})}}, {}};
  const auto of = [&](const Expr& value) { return result(KernelSpec("k").output("y", f32, value), inputs); };
  CHECK(of(row_sum(x)) == std::vector<float>{6, 1});
  CHECK(of(row_mean(x)) == std::vector<float>{1.2f, 0.2f});
  CHECK(of(row_max(x)) == std::vector<float>{5, 2});
  CHECK(of(row_min(x)) == std::vector<float>{-7, -1});
  CHECK(of(row_absmax(x)) == std::vector<float>{7, 2});
  CHECK(of(group_sum(x, 2)) == std::vector<float>{-6, 7, 5, 0, -1, 2});
  CHECK(of(group_mean(x, 4)) == std::vector<float>{0.25f, 5, -0.25f, 2});
  CHECK(of(group_max(x, 4)) == std::vector<float>{4, 5, 0, 2});
  CHECK(of(group_min(x, 2)) == std::vector<float>{-7, 3, 5, 0, -1, 2});
  CHECK(of(group_absmax(x, 8)) == std::vector<float>{7, 2});
  CHECK(of(ungroup(group_max(x, 2), 2, 5)) == std::vector<float>{1, 1, 4, 4, 5, 0, 0, 0, 0, 2});
}

TEST_CASE("NaN in reductions: sums carry it, extremes ignore it") {
  const Expr x = input("x", f32, {rows, 2});
  const Inputs inputs{{{"x", tensor(f32, {2, 2}, {NAN, -3, NAN, NAN})}}, {}};
  const auto of = [&](const Expr& value) { return result(KernelSpec("k").output("y", f32, value), inputs); };
  CHECK(std::isnan(of(row_sum(x))[0]));
  CHECK(of(row_max(x)) == std::vector<float>{-3, -inf});
  CHECK(of(row_min(x)) == std::vector<float>{-3, inf});
  CHECK(of(row_absmax(x)) == std::vector<float>{3, 0});
}

TEST_CASE("sums are rounded once, at their end") {
  const Expr x = input("x", f32, {rows, 4});
  const Inputs inputs{{{"x", tensor(f32, {1, 4}, {1e8f, 1, -1e8f, 1})}}, {}};
  CHECK(result(KernelSpec("k").output("y", f32, row_sum(x)), inputs) == std::vector<float>{2});
}

TEST_CASE("every rounding is a cast, and every cast rounds") {
  const Expr x = input("x", f32, {3});
  const Inputs inputs{{{"x", tensor(f32, {3}, {1.0004f, 300, 1e6f})}}, {}};
  CHECK(result(KernelSpec("k").output("y", f32, cast(f16, x) * 2), inputs) == std::vector<float>{2, 600, inf});
  CHECK(result(KernelSpec("k").output("y", e4m3fnuz, x), inputs) == std::vector<float>{1, 240, 240});
  CHECK(result(KernelSpec("k").output("y", e4m3fn, x), inputs) == std::vector<float>{1, 288, 448});
  CHECK(std::isnan(result(KernelSpec("k").output("y", e4m3fn, cast_nonsaturating(e4m3fn, x)), inputs)[2]));
  CHECK(result(KernelSpec("k").output("y", boolean, x - 300), inputs) == std::vector<float>{1, 0, 1});
}

TEST_CASE("comparisons, masks, selects") {
  const Expr x = input("x", f32, {4}), mask = input("mask", boolean, {4});
  const Inputs inputs{{{"x", tensor(f32, {4}, {-1, 0, 2, NAN})}, {"mask", tensor(boolean, {4}, {1, 0, 1, 1})}}, {}};
  CHECK(result(KernelSpec("k").output("y", f32, select(logical_and(mask, x > -5), x, 9)), inputs) == std::vector<float>{-1, 9, 2, 9});
  CHECK(result(KernelSpec("k").output("y", u8, cast(f32, logical_or(x < 0, logical_not(mask))) * 7), inputs) ==
        std::vector<float>{7, 7, 0, 0});
}

TEST_CASE("strided inputs are read by their stride, and rows may be none") {
  const Expr x = input("x", f16, {rows, 3}, Layout::strided);
  const KernelSpec spec = KernelSpec("k").output("y", f16, x * 2).output("m", f32, row_max(x));
  Tensor wide(f16, {2, 3}, 8);
  std::ranges::fill(wide.data(), std::byte{0xff});
  for (std::int64_t i = 0; i < 6; ++i) wide.set(i, static_cast<float>(i));
  CHECK(wide.data().size() == 32);
  const Outputs outputs = evaluate(spec, {{{"x", wide}}, {}});
  CHECK(values(outputs.at("y")) == std::vector<float>{0, 2, 4, 6, 8, 10});
  CHECK(values(outputs.at("m")) == std::vector<float>{2, 5});
  const Outputs none = evaluate(spec, {{{"x", Tensor(f16, {0, 3}, 8)}}, {}});
  CHECK(none.at("y").shape() == std::vector<std::int64_t>{0, 3});
  CHECK(none.at("m").shape() == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("integer scalars round to a whole number") {
  const Expr x = input("x", f32, {1});
  const KernelSpec spec = KernelSpec("k").output("y", f32, x * scalar("n", i32) + scalar("s"));
  CHECK(result(spec, {{{"x", tensor(f32, {1}, {2})}}, {{"n", 2.6}, {"s", 0.5}}}) == std::vector<float>{6.5f});
}

TEST_CASE("catalogue: RMS norm with residual and fp8, by plain loops") {
  for (const bool dynamic_scale : {false, true}) {
    const std::int64_t cols = 100;
    const KernelSpec spec = catalog_spec("add_rmsnorm_quant", {.cols = cols, .dynamic_scale = dynamic_scale});
    Inputs inputs = random_inputs(spec, 5);
    if (!dynamic_scale) inputs.tensors.at("scale").set(0, 0.03f);
    const Outputs outputs = evaluate(spec, inputs);
    const auto x = rows_of(inputs.tensors.at("x")), residual = rows_of(inputs.tensors.at("residual")),
               weight = rows_of(inputs.tensors.at("weight"));
    auto h = x, q = x;
    std::vector<std::vector<double>> scales;
    for (std::size_t r = 0; r < x.size(); ++r) {
      double squares = 0, largest = 0;
      for (std::size_t c = 0; c < x[r].size(); ++c) {
        h[r][c] = static_cast<double>(round_to(f16, static_cast<float>(x[r][c] + residual[r][c])));
        squares += h[r][c] * h[r][c];
      }
      for (std::size_t c = 0; c < x[r].size(); ++c) {
        q[r][c] = h[r][c] / std::sqrt(squares / static_cast<double>(cols) + 1e-6) * weight[0][c];
        largest = std::max(largest, std::fabs(q[r][c]));
      }
      const double scale = dynamic_scale ? largest / 448 : static_cast<double>(0.03f);
      scales.push_back({scale});
      for (double& value : q[r]) value = std::clamp(value / scale, -448.0, 448.0);
    }
    check_near(outputs.at("residual_out"), h, 0, 0);
    check_near(outputs.at("q"), q, 1.0 / 16 + 1e-4, 0x1p-10); // half a step of three mantissa bits, or of the denormals
    if (dynamic_scale) check_near(outputs.at("scale"), scales, 1e-6, 0);
  }
}

TEST_CASE("catalogue: softmax and layer norm, by plain loops") {
  const KernelSpec softmax = catalog_spec("softmax", {.cols = 257, .dtype = f32}),
                   layernorm = catalog_spec("layernorm", {.cols = 257, .dtype = f32});
  const Inputs inputs = random_inputs(layernorm, 9);
  const auto x = rows_of(inputs.tensors.at("x")), weight = rows_of(inputs.tensors.at("weight")), bias = rows_of(inputs.tensors.at("bias"));
  auto probabilities = x, normalised = x;
  for (std::size_t r = 0; r < x.size(); ++r) {
    double total = 0, variance = 0;
    const double n = static_cast<double>(x[r].size()), mean = std::accumulate(x[r].begin(), x[r].end(), 0.0) / n;
    for (const double value : x[r]) {
      total += std::exp(value);
      variance += (value - mean) * (value - mean) / n;
    }
    for (std::size_t c = 0; c < x[r].size(); ++c) {
      probabilities[r][c] = std::exp(x[r][c]) / total;
      normalised[r][c] = (x[r][c] - mean) / std::sqrt(variance + 1e-6) * weight[0][c] + bias[0][c];
    }
  }
  check_near(evaluate(softmax, {{{"x", inputs.tensors.at("x")}}, {}}).at("y"), probabilities, 1e-6, 0);
  check_near(evaluate(layernorm, inputs).at("y"), normalised, 1e-5, 1e-6);
}

TEST_CASE("catalogue: activations, by plain loops") {
  const auto check = [](const char* entry, auto formula) {
    CAPTURE(entry);
    const KernelSpec spec = catalog_spec(entry, {.cols = 33, .dtype = f32});
    Inputs inputs = random_inputs(spec, 2);
    const bool has_bias = inputs.tensors.contains("bias"), has_gate = inputs.tensors.contains("gate");
    const auto a = rows_of(inputs.tensors.at(has_gate ? "gate" : "x")), b = rows_of(inputs.tensors.at(has_bias   ? "bias"
                                                                                                      : has_gate ? "up"
                                                                                                                 : "y"));
    const double alpha = inputs.scalars.contains("alpha") ? inputs.scalars.at("alpha") : 0;
    auto expected = a;
    for (std::size_t r = 0; r < a.size(); ++r)
      for (std::size_t c = 0; c < a[r].size(); ++c) expected[r][c] = formula(a[r][c], b[has_bias ? 0 : r][c], alpha);
    check_near(evaluate(spec, inputs).begin()->second, expected, 1e-6, 1e-6);
  };
  check("silu_mul", [](double gate, double up, double) { return gate / (1 + std::exp(-gate)) * up; });
  check("gelu_mul", [](double gate, double up, double) { return 0.5 * gate * (1 + std::erf(gate / std::sqrt(2.0))) * up; });
  check("add_bias_gelu", [](double x, double bias, double) {
    const double z = x + bias;
    return 0.5 * z * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (z + 0.044715 * z * z * z)));
  });
  check("scaled_add", [](double x, double y, double alpha) { return x + alpha * y; });
}

TEST_CASE("catalogue: group quantisation comes back through group dequantisation") {
  const CatalogOptions options{.cols = 300, .dtype = f32, .fp8 = e4m3fnuz};
  const KernelSpec quant = catalog_spec("group_quant", options), dequant = catalog_spec("group_dequant", options);
  const Inputs inputs = random_inputs(quant, 4);
  const Outputs outputs = evaluate(quant, inputs);
  const auto x = rows_of(inputs.tensors.at("x")), scales = rows_of(outputs.at("scale"));
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t group = 0; group < 3; ++group) {
      const auto first = x[r].begin() + static_cast<std::ptrdiff_t>(group * 128), last = group == 2 ? x[r].end() : first + 128;
      const double largest = std::fabs(*std::max_element(first, last, [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
      CHECK(scales[r][group] == doctest::Approx(largest / 240));
    }
  const Outputs back = evaluate(dequant, {{{"q", outputs.at("q")}, {"scale", outputs.at("scale")}}, {}});
  check_near(back.at("y"), x, 1.0 / 16 + 1e-4, 3.0 / 240 * 0x1p-10);
}

TEST_CASE("random inputs fit their specs and are the same for the same seed") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const KernelSpec spec = random_spec(seed, {.max_cols = 64});
    const Inputs a = random_inputs(spec, seed), b = random_inputs(spec, seed), c = random_inputs(spec, seed + 1);
    CHECK_NOTHROW(dim_sizes(spec, a));
    for (const auto& [name, t] : a.tensors) CHECK(t.data() == b.tensors.at(name).data());
    const auto differs = [&](const auto& each) { return each.second.size() > 4 && each.second.data() != c.tensors.at(each.first).data(); };
    CHECK((std::ranges::any_of(a.tensors, differs) ||
           std::ranges::all_of(a.tensors, [](const auto& each) { return each.second.size() <= 4; })));
  }
}

TEST_CASE("a random draw is the same on every platform") {
  Random random(42);
  CHECK(random.bits() == 13930160852258120406u); // mt19937_64, whose stream the C++ standard fixes
  CHECK(random.between(3, 3) == 3);
}

TEST_CASE("transpose: what is one a group, groups in front") {
  const KernelSpec spec = parse_spec("kernel k dim rows input x: f32[rows, 6] output m: f32[3, rows] = transpose(group_max(x, 2))");
  CHECK(parse_spec(to_text(spec)) == spec);
  Tensor x(f32, {2, 6});
  for (std::int64_t i = 0; i < 12; ++i) x.set(i, static_cast<float>(i));
  const Tensor m = evaluate(spec, {{{"x", x}}, {}}).at("m");
  REQUIRE(m.shape() == std::vector<std::int64_t>{3, 2});
  const float expected[] = {1, 7, 3, 9, 5, 11};
  for (std::int64_t i = 0; i < 6; ++i) CHECK(m.at(i) == expected[i]);
}
