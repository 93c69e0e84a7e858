// Partners in registers, executed on both architectures: several distances, values of groups, transforms and normalisations.
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

namespace pairs_numeric {
using namespace kiln;

namespace {

const Dim tokens = dynamic("tokens");

void check(const KernelSpec& spec, std::int64_t rows, const std::vector<std::string>& settings = {}) {
  for (const std::string_view arch : known_archs()) {
    const auto wrong = testing::check_kernel(spec, target(arch), 1, {.rows = rows, .settings = settings});
    CHECK_MESSAGE(!wrong, wrong.value_or(""));
  }
}

// Every element of `y` as a number of f64.
std::vector<double> run(const KernelSpec& spec, const Target& to, const Inputs& inputs) {
  CompileOptions compile = own_process_options(process_environment());
  const BuiltKernel built = build_kernel(spec, to, compile);
  const EmulatedRun done = emulate(spec, built.source, built.object, inputs);
  CHECK(done.result.defects.empty());
  const Tensor& y = done.outputs.at("y");
  std::vector<double> values;
  for (std::int64_t i = 0; i < y.size(); ++i) values.push_back(static_cast<double>(y.at(i)));
  return values;
}

// A matrix after as many normalisations of its rows, then its columns.
std::vector<double> normalised(std::vector<double> matrix, int n, int times) {
  for (int step = 0; step < 2 * times; ++step)
    for (int line = 0; line < n; ++line) {
      const int begin = step % 2 ? line : line * n, stride = step % 2 ? n : 1;
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += matrix[static_cast<std::size_t>(begin + i * stride)];
      for (int i = 0; i < n; ++i) matrix[static_cast<std::size_t>(begin + i * stride)] /= sum;
    }
  return matrix;
}

} // namespace

TEST_CASE("every distance of a wave, and every width of a lane") {
  const auto chained = [](const Expr& x, std::int64_t most) {
    Expr y = x;
    for (std::int64_t distance = most; distance >= 1; distance /= 2) y = partner(y, distance) * 0.5 + y * static_cast<double>(distance + 1);
    return y;
  };
  for (const DType type : {f32, f16, i8})
    for (const std::int64_t cols : {16, 96, 512, 1536}) {
      CAPTURE(cols);
      const Expr x = input("x", type, {tokens, cols});
      check(KernelSpec("k").output("y", f32, chained(x, std::min<std::int64_t>(256, (cols & -cols) / 2))).output("z", type, partner(x, 8)),
            3);
    }
  const Expr x = input("x", bf16, {tokens, 256});
  for (const char* vec : {"vec=1", "vec=2", "vec=4", "vec=8", "vec=16"}) {
    CAPTURE(vec);
    check(KernelSpec("k").output("y", f32, chained(x, 32)).output("z", bf16, partner(x, 32)), 3,
          {vec, "threads_per_row=64", "rows_per_block=1"});
  }
}

TEST_CASE("Hadamard transforms of every block") {
  for (std::int64_t n = 2; n <= 512; n *= 2)
    for (const DType type : {bf16, f32}) {
      CAPTURE(n);
      const Expr x = input("x", type, {tokens, 3 * n});
      check(KernelSpec("k").output("y", f32, hadamard(x, n)), 5);
    }
  for (const std::int64_t group : {64, 128, 512})
    check(catalog_spec("hadamard", {.cols = 4096, .dtype = f16, .in_place = true, .group = group}), 3);
}

// Whole numbers of 8 bits: every sum is exact, so that the device has no choice.
TEST_CASE("a transform of whole numbers is exact") {
  check(KernelSpec("k").output("y", i32, hadamard(input("x", i8, {tokens, 1024}), 512)), 2);
}

TEST_CASE("a transform between reductions, whatever keeps the row") {
  const Expr x = input("x", bf16, {tokens, 2048}), normed = x * rsqrt(row_mean(x * x) + 1e-6);
  const Expr turned = hadamard(normed, 128) * 0.08838834764831845;
  const Expr scale = max(row_absmax(turned), 1e-12) / 240.0;
  for (const char* residency : {"residency=registers", "residency=lds", "residency=reload"})
    check(KernelSpec("k").output("y", i8, turned / scale).output("scale", f32, scale), 2, {residency, "prefetch_depth=1"});
}

TEST_CASE("rows that are turned, transformed and scattered") {
  const Expr k = input("k", bf16, {tokens, 4, 128}, Layout::strided), slot = input("slot", i64, {tokens, 1, 1});
  const Expr angle = input("angle", f32, {tokens, 1, 128}), cache = input("cache", bf16, {dynamic("slots"), 4, 128});
  const Expr turned = k * cos(angle) + rotate(k, 64) * sin(angle);
  check(KernelSpec("k").output("out", bf16, scatter(cache, slot, hadamard(turned, 128)), {.in_place_of = "cache"}), 3);
}

TEST_CASE("far partners from memory beside near ones in registers") {
  const Expr x = input("x", f16, {tokens, 192});
  check(KernelSpec("k").output("y", f32, partner(hadamard(x * 2.0, 16), 48) + hadamard(partner(x, 96), 32)), 3);
}

TEST_CASE("partners of groups, of running sums and of bools") {
  const Expr x = input("x", f16, {tokens, 512}), flag = input("flag", boolean, {tokens, 512});
  for (const std::int64_t group : {2, 8, 64}) {
    const Expr sums = ungroup(group_sum(x, group), group, 512);
    const KernelSpec spec = KernelSpec("k")
                                .output("a", f32, partner(sums * x, group))
                                .output("b", f32, x + partner(sums, 32))
                                .output("c", f32, partner(partner(sums + 1, group / 2), 64));
    check(spec, 3);
  }
  check(KernelSpec("k").output("y", f32, partner(row_cumsum(x), 16) + partner(x, 256)), 2);
  check(KernelSpec("k").output("y", f32, partner(cast(f32, flag) * x, 4)), 3);
  check(KernelSpec("k").output("y", f32, partner(mx_dequantise(input("q", e2m1, {tokens, 512}), input("s", e8m0, {tokens, 16})), 64)), 3);
}

TEST_CASE("Sinkhorn normalisations of matrices of every size") {
  for (const std::int64_t n : {2, 4, 8, 16})
    for (const DType type : {f32, bf16}) {
      CAPTURE(n);
      check(KernelSpec("k").output("y", f32, sinkhorn(exp(input("x", type, {tokens, 2 * n * n})), n, 2)), 37);
    }
}

// Intervals double with every normalisation and say nothing after 40, so this compares with f64. A normalisation has 6 roundings at most,
// each of which the later ones pass on and may add to what they get: 40 * 40 * 6 * 2^-24.
TEST_CASE("twenty normalisations of a token's matrix") {
  constexpr double tolerance = 40 * 40 * 6 * 0x1p-24;
  const KernelSpec spec = catalog_spec("sinkhorn", {.cols = 16, .dtype = f32});
  const Inputs inputs = random_inputs(spec, 7, {.dynamic_size = 133});
  const Tensor& x = inputs.tensors.at("x");
  for (const std::string_view arch : known_archs()) {
    const std::vector<double> y = run(spec, target(arch), inputs);
    REQUIRE(y.size() == 133 * 16);
    for (std::int64_t first = 0; first < x.size(); first += 16) {
      std::vector<double> matrix;
      for (std::int64_t i = 0; i < 16; ++i) {
        double most = -INFINITY;
        for (std::int64_t j = i / 4 * 4; j < i / 4 * 4 + 4; ++j) most = std::max(most, static_cast<double>(x.at(first + j)));
        matrix.push_back(std::exp(static_cast<double>(x.at(first + i)) - most) + 1e-6);
      }
      const std::vector<double> exact = normalised(matrix, 4, 20);
      for (std::size_t i = 0; i < 16; ++i) CHECK(y[static_cast<std::size_t>(first) + i] == doctest::Approx(exact[i]).epsilon(tolerance));
      for (std::size_t column = 0; column < 4; ++column) {
        double sum = 0;
        for (std::size_t row = 0; row < 4; ++row) sum += y[static_cast<std::size_t>(first) + 4 * row + column];
        CHECK(sum == doctest::Approx(1).epsilon(1e-6));
      }
    }
  }
}

} // namespace pairs_numeric
