// Partners at several distances: what transforms and normalisations mean, their text, and where a plan takes them.
#include "gen/families/make_plan.h"
#include "gen/families/schedule.h"
#include "gen/plan/view.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include "gen/spec/operations/helpers.h"
#include <algorithm>
#include <bit>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

const Dim rows = dynamic("rows");

std::int64_t count_in_wave(const KernelSpec& spec) { return std::ranges::count_if(nodes_in_order(spec), pairs_in_wave); }
std::int64_t count_in_wave(const Expr& value) { return count_in_wave(lower_partners(SpecGraph(KernelSpec("k").output("y", f32, value)))); }

} // namespace

TEST_CASE("a Hadamard transform has the signs of the bits that two columns have in common") {
  constexpr std::int64_t n = 16, cols = 32;
  const Expr x = input("x", f32, {rows, cols});
  Tensor numbers(f32, {2, cols});
  for (std::int64_t i = 0; i < numbers.size(); ++i) numbers.set(i, static_cast<float>(i * 7 % 23) - 11.0f);
  const Inputs inputs{.tensors = {{"x", numbers}}, .scalars = {}};
  const Tensor y = evaluate(KernelSpec("k").output("y", f32, hadamard(x, n)), inputs).at("y");
  for (std::int64_t i = 0; i < y.size(); ++i) {
    float sum = 0;
    for (std::int64_t j = 0; j < n; ++j)
      sum += (std::popcount(static_cast<std::uint64_t>(i % n & j)) % 2 ? -1.0f : 1.0f) * numbers.at(i / n * n + j);
    CHECK(y.at(i) == sum);
  }
  // Twice is n times what it was.
  const Tensor twice = evaluate(KernelSpec("k").output("y", f32, hadamard(hadamard(x, n), n)), inputs).at("y");
  for (std::int64_t i = 0; i < y.size(); ++i) CHECK(twice.at(i) == n * numbers.at(i));
}

TEST_CASE("a Sinkhorn normalisation divides rows, then columns, by their sums") {
  const Expr x = input("x", f32, {1, 4});
  Tensor numbers(f32, {1, 4});
  for (std::int64_t i = 0; i < 4; ++i) numbers.set(i, static_cast<float>(i + 1)); // {1 2} {3 4}
  const Tensor y = evaluate(KernelSpec("k").output("y", f32, sinkhorn(x, 2, 1)), {.tensors = {{"x", numbers}}, .scalars = {}}).at("y");
  const double a = 1.0 / 3, b = 2.0 / 3, c = 3.0 / 7, d = 4.0 / 7;
  const double expected[] = {a / (a + c), b / (b + d), c / (a + c), d / (b + d)};
  for (std::int64_t i = 0; i < 4; ++i) CHECK(static_cast<double>(y.at(i)) == doctest::Approx(expected[i]).epsilon(1e-6));
}

TEST_CASE("functions of the text are written out, and what is printed reads back") {
  const Expr x = input("x", f16, {rows, 64});
  const auto text = [](const std::string& value) {
    return parse_spec("kernel k\ndim rows\ninput x: f16[rows, 64]\noutput y: f32[rows, 64] = " + value + "\n");
  };
  const auto spec = [](const Expr& value) { return KernelSpec("k").output("y", f32, value); };
  CHECK(text("hadamard(x, 64) * 0.125") == spec(hadamard(x, 64) * 0.125));
  CHECK(text("sinkhorn(exp(x), 4, 20)") == spec(sinkhorn(exp(x), 4, 20)));
  CHECK(text("x + rotate(x, 32)") == spec(x + rotate(x, 32)));
  for (const KernelSpec& each : {spec(hadamard(x, 64)), spec(sinkhorn(x, 8, 3))}) CHECK(parse_spec(to_text(each)) == each);
  for (const Helper& helper : helpers()) CHECK(find_helper(helper.name) == &helper);
  CHECK(find_helper("partner") == nullptr);
}

TEST_CASE("one distance is read from memory; several, and what memory does not have, stay in registers") {
  const Expr x = input("x", f16, {rows, 512}), sums = ungroup(group_sum(x, 8), 8, 512);
  CHECK(count_in_wave(rotate(x * rsqrt(row_mean(x * x) + 1e-6), 64)) == 0);
  CHECK(count_in_wave(partner(x, 64) + partner(x, 4)) == 0);
  CHECK(count_in_wave(partner(partner(x, 2), 64)) == 0);
  CHECK(count_in_wave(partner(partner(x, 4), 64)) == 2);
  CHECK(count_in_wave(hadamard(x, 512)) == 9);
  CHECK(count_in_wave(partner(x * sums, 4)) == 0); // both of one group
  CHECK(count_in_wave(partner(x * sums, 8)) == 1);
  CHECK(count_in_wave(partner(row_cumsum(x), 8)) == 1);
  CHECK(count_in_wave(partner(cast(f32, input("flag", boolean, {rows, 512})), 8)) == 1);
}

TEST_CASE("a long chain of partners takes as many nodes as it has steps, in memory too") {
  Expr y = input("x", f16, {rows, 128});
  for (int i = 0; i < 60; ++i) y = y * 0.5 + partner(y, 64);
  const KernelSpec lowered = lower_partners(SpecGraph(KernelSpec("k").output("y", f32, y)));
  CHECK(count_in_wave(lowered) == 0);
  CHECK(nodes_in_order(lowered).size() < 300);
}

TEST_CASE("partners in registers mean the same as before they were put there") {
  const Expr x = input("x", f16, {rows, 192}), sums = ungroup(group_sum(x, 8), 8, 192);
  const KernelSpec spec = KernelSpec("k")
                              .output("a", f32, partner(hadamard(x * 2, 16), 48))
                              .output("b", f32, hadamard(partner(x, 96), 32))
                              .output("c", f32, partner(sums, 16));
  const KernelSpec lowered = lower_partners(SpecGraph(spec));
  CHECK(count_in_wave(lowered) > 5);
  const Inputs inputs = random_inputs(spec, 3);
  const Outputs before = evaluate(spec, inputs), after = evaluate(lowered, inputs);
  for (const auto& [name, tensor] : before)
    for (std::int64_t i = 0; i < tensor.size(); ++i) CHECK(tensor.bits(i) == after.at(name).bits(i));
}

TEST_CASE("schedules hold pairs in a wave, and many short rows share one") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const Target to = target(arch);
    const auto config = [&](DType type, std::int64_t cols, std::int64_t n) {
      const Plan plan = make_plan(KernelSpec("k").output("y", type, hadamard(input("x", type, {rows, cols}), n)), to);
      return std::get<RowwiseConfig>(choose_schedule(plan, to).config);
    };
    CHECK(config(f32, 512, 512).vec * 64 >= 512); // two accesses per lane
    CHECK(config(f16, 8192, 512).vec * 64 >= 512);
    const RowwiseConfig short_rows = config(bf16, 16, 16);
    CHECK(short_rows.threads_per_row == 2);
    CHECK(short_rows.rows_per_block >= 32);
  }
}

// Every addition of a transform adds a rounding of what it adds up: nine of them for 512 columns, so nine roundings of their magnitudes.
TEST_CASE("the bound of a transform grows with its steps") {
  const Expr x = input("x", f32, {1, 512});
  Tensor ones(f32, {1, 512});
  for (std::int64_t i = 0; i < 512; ++i) ones.set(i, 1.0f / (static_cast<float>(i) + 3.0f));
  const auto width = [&](std::int64_t n) {
    const auto bounds =
        evaluate_bounds(KernelSpec("k").output("y", f32, hadamard(x, n)), {.tensors = {{"x", ones}}, .scalars = {}}).at("y");
    return (bounds.ranges[0].hi - bounds.ranges[0].lo) / bounds.ranges[0].hi;
  };
  CHECK(width(512) > width(16));
  CHECK(width(512) < 2 * 9 * 0x1p-23);
}
