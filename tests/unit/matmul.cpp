// Matrix products: their meaning against plain loops and results worked out by hand, their text, the order of preshuffled rows.
#include "gen/catalog/catalog.h"
#include "gen/plan/validate.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/preshuffle.h"
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

using namespace kiln;

TEST_CASE("scales of blocks belong to 128 rows of b and 128 elements of k") {
  const KernelSpec spec = KernelSpec("k").output(
      "c", f32, matmul_nt_scaled(input("a", i8, {2, 144}), input("b", i8, {130, 144}), input("sa", f32, {2, 2}), input("sb", f32, {2, 2})));
  Inputs inputs = random_inputs(spec, 1);
  const auto at = [&](const char* name, std::int64_t row, std::int64_t column) {
    const Tensor& t = inputs.tensors.at(name);
    return static_cast<double>(t.at(row * t.shape()[1] + column));
  };
  const Outputs outputs = evaluate(spec, inputs);
  const auto bounds = evaluate_bounds(spec, inputs);
  for (const std::int64_t row : {0, 1})
    for (const std::int64_t column : {0, 127, 128, 129}) {
      double sum = 0;
      for (std::int64_t k = 0; k < 144; ++k)
        sum += at("a", row, k) * at("b", column, k) * at("sa", row, k / 128) * at("sb", column / 128, k / 128);
      CHECK(outputs.at("c").at(row * 130 + column) == doctest::Approx(sum).epsilon(1e-6));
      const Range& range = bounds.at("c").ranges[static_cast<std::size_t>(row * 130 + column)];
      CHECK(range.contains(outputs.at("c").at(row * 130 + column)));
      CHECK(range.hi - range.lo < 1e-3 * (1 + std::fabs(sum)));
    }
  inputs.tensors.at("sb").set(0, INFINITY); // of rows 0 to 127 of b: infinite, or NaN if signs differ
  const auto infinite = evaluate_bounds(spec, inputs);
  CHECK(infinite.at("c").ranges[0].contains(NAN));
  CHECK(!infinite.at("c").ranges[129].contains(NAN));
}

TEST_CASE("weights of 4 bits: the even k in the low half, rounded after the product with the scale") {
  const KernelSpec spec = KernelSpec("k").output(
      "c", f32,
      matmul_nt_w4(input("a", f16, {1, 64}), input("b", u8, {2, 32}), input("scale", f16, {2, 2}), input("zero", u8, {2, 2}), 32));
  Inputs inputs = random_inputs(spec, 1);
  const auto fill = [&](const char* name, float value) {
    for (std::int64_t i = 0; i < inputs.tensors.at(name).size(); ++i) inputs.tensors.at(name).set(i, value);
  };
  fill("a", 0);
  fill("b", 0x5c); // q is 12 at even k, 5 at odd k
  fill("scale", 1);
  fill("zero", 8);
  const auto c = [&](std::int64_t k, std::int64_t row) {
    fill("a", 0);
    inputs.tensors.at("a").set(k, 1);
    return evaluate(spec, inputs).at("c").at(row);
  };
  CHECK(c(0, 0) == 4);
  CHECK(c(1, 0) == -3);
  inputs.tensors.at("scale").set(3, 0.333251953125f); // 1365 / 4096, of row 1 and k from 32 on
  inputs.tensors.at("zero").set(3, 1);
  CHECK(c(31, 1) == -3);
  CHECK(c(32, 1) == 3.666015625f); // 11 * 1365 / 4096 = 3.66577, between 3.6640625 and 3.666015625 in f16
  CHECK(c(33, 1) == 4 * 0.333251953125f);
}

TEST_CASE("rows that are computed from a product: exact, and off by what they may be off") {
  const Expr x = input("x", f32, {1, 4}), a = input("a", f32, {8, 4}), b = input("b", f32, {2, 8});
  const KernelSpec spec = KernelSpec("two").output("y", f32, matmul_nt(matmul_nt(x, a) * 0.1F, b));
  Inputs inputs;
  for (const Expr& each : spec.inputs()) {
    Tensor& tensor =
        inputs.tensors.try_emplace(each->name, each.dtype(), std::vector{each.shape()[0].size(), each.shape()[1].size()}).first->second;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<float>(i + 1));
  }
  double exact = 0; // row 1 of b is 9 to 16, row r of a 4r + 1 to 4r + 4
  for (int r = 0; r < 8; ++r) exact += (9 + r) * 0.1 * (10.0 * 4 * r + 30);
  CHECK(static_cast<double>(evaluate(spec, inputs).at("y").at(1)) == doctest::Approx(exact));
  const Range range = evaluate_bounds(spec, inputs).at("y").ranges[1];
  CHECK(range.lo < exact);
  CHECK(range.hi > exact);
  CHECK(range.hi - range.lo < exact * 0x1p-18);
  const KernelSpec whole = KernelSpec("whole").output("y", f32, matmul_nt(matmul_nt(x, a), b)); // of integers: certain
  const Range certain = evaluate_bounds(whole, inputs).at("y").ranges[1];
  CHECK(certain.lo == certain.hi);
  inputs.tensors.at("x").set(0, std::numeric_limits<float>::infinity());
  CHECK(evaluate_bounds(whole, inputs).at("y").ranges[0].contains(std::numeric_limits<double>::infinity()));
}

TEST_CASE("products parse back, preshuffled or not") {
  for (const char* name : {"gemm", "gemm_swiglu_quant", "gemm_w8a16", "gemm_w4a16", "gemm_block_scaled"})
    for (const bool preshuffled : {false, true}) {
      const KernelSpec spec = catalog_spec(name, {.dtype = bf16, .group = 64, .n = 160, .k = 256, .preshuffled = preshuffled});
      const std::string text = to_text(spec);
      CAPTURE(text);
      CHECK((text.find("preshuffled") != text.npos) == preshuffled);
      CHECK_NOTHROW(validate(spec));
      CHECK(to_text(parse_spec(text)) == text);
    }
}

TEST_CASE("preshuffled rows: 16 bytes of 16 rows at a time") {
  const std::int64_t rows = 19, row_bytes = 48;
  std::vector<std::byte> matrix(static_cast<std::size_t>(rows * row_bytes));
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<std::byte>(i * 7 % 251 + 1);
  const std::vector<std::byte> shuffled = preshuffle(matrix, rows, row_bytes);
  REQUIRE(static_cast<std::int64_t>(shuffled.size()) == 32 * row_bytes);
  CHECK(preshuffled_bytes(rows, row_bytes) == 32 * row_bytes);
  std::size_t zeros = 0;
  for (std::int64_t at = 0; at < 32 * row_bytes; ++at) {
    const std::int64_t row = at / (16 * row_bytes) * 16 + at / 16 % 16, byte = at % (16 * row_bytes) / 256 * 16 + at % 16;
    const std::byte expected = row < rows ? matrix[static_cast<std::size_t>(row * row_bytes + byte)] : std::byte{0};
    zeros += row < rows ? 0 : 1;
    REQUIRE(shuffled[static_cast<std::size_t>(at)] == expected);
  }
  CHECK(zeros == 13 * 48);
}
