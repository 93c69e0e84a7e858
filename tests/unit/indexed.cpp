// Indices and views: their meaning against results worked out by hand, their text, and where partners go in a plan.
#include "gen/error.h"
#include "gen/plan/view.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/spec/graph.h"
#include "gen/spec/math.h"
#include <cmath>
#include <doctest/doctest.h>

using namespace kiln;

namespace {

Tensor numbers(DType type, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor tensor(type, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), static_cast<float>(values[i]));
  return tensor;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.size(); ++i) values.push_back(static_cast<double>(tensor.at(i)));
  return values;
}

const Dim tokens = dynamic("tokens"), slots = dynamic("slots");

// The value of the only output, which lies within its bounds.
std::vector<double> result(const KernelSpec& spec, std::map<std::string, Tensor> tensors) {
  const Inputs inputs{.tensors = std::move(tensors), .scalars = {}};
  const Outputs outputs = evaluate(spec, inputs);
  const auto wrong = find_mismatch(outputs, evaluate_bounds(spec, inputs));
  CHECK_MESSAGE(!wrong, (wrong ? to_text(*wrong) : std::string()));
  return values_of(outputs.begin()->second);
}

using List = std::vector<double>;

} // namespace

TEST_CASE("gather takes rows, zeros for a negative index, the last row for one that is checked") {
  for (const DType type : {i32, i64}) {
    const Expr table = input("table", f32, {slots, 2}), index = input("index", type, {tokens, 1});
    const Tensor rows = numbers(f32, {3, 2}, {1, 2, 3, 4, 5, 6});
    CHECK(result(KernelSpec("k").output("y", f32, gather(table, index) * 2),
                 {{"table", rows}, {"index", numbers(type, {4, 1}, {2, 0, -7, 2})}}) == List{10, 12, 2, 4, 0, 0, 10, 12});
    CHECK(result(KernelSpec("k").output("y", f32, gather(table, index, {.checked = true}) + 1),
                 {{"table", rows}, {"index", numbers(type, {3, 1}, {3, 1'000'000, -1})}}) == List{6, 7, 6, 7, 1, 1});
  }
}

TEST_CASE("gather of rows of two dimensions, and of one row for all heads") {
  const Expr cache = input("cache", f32, {slots, 2, 2}), table = input("table", f32, {slots, 2}),
             index = input("index", i32, {tokens, 1, 1});
  const std::map<std::string, Tensor> inputs{{"cache", numbers(f32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                                             {"table", numbers(f32, {2, 2}, {10, 20, 30, 40})},
                                             {"index", numbers(i32, {2, 1, 1}, {1, 0})}};
  CHECK(result(KernelSpec("k").output("y", f32, gather(cache, index) + gather(table, index)), inputs) ==
        List{35, 46, 37, 48, 11, 22, 13, 24});
}

TEST_CASE("scatter replaces rows, skips negative indices, and what is beyond the end if it is checked") {
  const Expr target = input("target", f16, {slots, 2}), index = input("index", i64, {tokens, 1}), x = input("x", f32, {tokens, 2});
  const auto spec = [&](IndexOptions options) {
    return KernelSpec("k").output("out", f16, scatter(target, index, x + 0.5, options), {.in_place_of = "target"});
  };
  const Tensor rows = numbers(f16, {3, 2}, {1, 2, 3, 4, 5, 6}), value = numbers(f32, {2, 2}, {10, 20, 30, 40});
  CHECK(result(spec({}), {{"target", rows}, {"x", value}, {"index", numbers(i64, {2, 1}, {2, -1})}}) == List{1, 2, 3, 4, 10.5, 20.5});
  CHECK(result(spec({.checked = true}), {{"target", rows}, {"x", value}, {"index", numbers(i64, {2, 1}, {3, 0})}}) ==
        List{30.5, 40.5, 3, 4, 5, 6});
  // Declared duplicates: an element is of either row.
  const Inputs both{.tensors = {{"target", rows}, {"x", value}, {"index", numbers(i64, {2, 1}, {1, 1})}}, .scalars = {}};
  const auto bounds = evaluate_bounds(spec({.duplicates = true}), both).at("out");
  CHECK(bounds.ranges[2].contains(10.5));
  CHECK(bounds.ranges[2].contains(30.5));
  CHECK(!bounds.ranges[2].contains(3));
  CHECK(bounds.ranges[0] == Range::exactly(1));
}

TEST_CASE("partners, positions and widened columns") {
  const Expr x = input("x", f32, {tokens, 8}), narrow = input("narrow", f32, {4});
  const std::map<std::string, Tensor> inputs{{"x", numbers(f32, {1, 8}, {0, 1, 2, 3, 4, 5, 6, 7})}};
  const auto of = [&](const Expr& value) { return result(KernelSpec("k").output("y", f32, value), inputs); };
  CHECK(of(partner(x, 4)) == List{4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(of(partner(x, 2)) == List{2, 3, 0, 1, 6, 7, 4, 5});
  CHECK(of(partner(x, 1)) == List{1, 0, 3, 2, 5, 4, 7, 6});
  CHECK(of(rotate(x, 4)) == List{-4, -5, -6, -7, 0, 1, 2, 3});
  CHECK(of(rotate(x, 1)) == List{-1, 0, -3, 2, -5, 4, -7, 6});
  CHECK(of(x - iota({8})) == List(8, 0));
  CHECK(of(x * 0 + iota({tokens, 1})) == List(8, 0));
  std::map<std::string, Tensor> both = inputs;
  both.emplace("narrow", numbers(f32, {4}, {1, 2, 3, 4}));
  CHECK(result(KernelSpec("k").output("y", f32, x * 0 + tile(narrow, 2)), both) == List{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(result(KernelSpec("k").output("y", f32, x * 0 + repeat(narrow, 2)), both) == List{1, 1, 2, 2, 3, 3, 4, 4});
}

TEST_CASE("the column of the largest element: ties, infinities, NaN") {
  const Expr x = input("x", f32, {tokens, 4});
  const double infinite = INFINITY;
  const Tensor rows = numbers(f32, {5, 4}, {1,         3,         3, 2,        NAN,      -1,        NAN, -2,  -infinite, -infinite,
                                            -infinite, -infinite, 5, infinite, infinite, -infinite, NAN, NAN, NAN,       NAN});
  CHECK(result(KernelSpec("k").output("c", f32, row_argmax(x)), {{"x", rows}}) == List{1, 1, 0, 1, 0});
  CHECK(result(KernelSpec("k").output("c", f32, row_argmin(x)), {{"x", rows}}) == List{0, 3, 0, 3, 0});
}

TEST_CASE("an element that may reach the largest counts in the bounds of its column") {
  const Range exact[] = {Range::exactly(1), {2, 3}, Range::exactly(2.5), Range::exactly(2.5)};
  CHECK(reduction_range(Op::row_argmax, exact, 0) == Range{1, 2});
  CHECK(reduction_range(Op::row_argmin, exact, 0) == Range::exactly(0));
  const Range maybe[] = {{5, 5, true}, Range::exactly(4)};
  CHECK(reduction_range(Op::row_argmax, maybe, 0) == Range{0, 1});
}

TEST_CASE("indices parse back") {
  const std::string text = R"(kernel k
dim tokens
dim positions
dim slots
input k: f16[tokens, 8, 64] strided
input cosine: f16[positions, 32] strided
input place: i64[tokens, 1, 1]
input cache: e4m3fn[slots, 8, 64]
input slot: i32[tokens, 1, 1]
let t1 = tile(gather(cosine, place, checked), 2)
output rows: f32[tokens, 8, 1] = row_argmax(t1 + k) + iota([tokens, 1, 1])
output out: e4m3fn[slots, 8, 64] = scatter(cache, slot, cast(e4m3fn, k * t1 + partner(k, 32) * pair_sign(64, 32)), checked, duplicates) in_place_of cache
)";
  const KernelSpec spec = parse_spec(text);
  CHECK(parse_spec(to_text(spec)) == spec);
  const std::string printed = to_text(spec);
  for (const char* part :
       {"gather(cosine, place, checked)", ", checked, duplicates) in_place_of cache", "iota([tokens, 1, 1])", "pair_sign(64, 32)"})
    CHECK_MESSAGE(printed.find(part) != printed.npos, printed);
  CHECK(to_text(KernelSpec("k").output("y", f32, gather(input("t", f32, {9, 4}), input("i", i32, {2, 1})))) !=
        to_text(KernelSpec("k").output("y", f32, gather(input("t", f32, {9, 4}), input("i", i32, {2, 1}), {.checked = true}))));
}

TEST_CASE("partners go down to what is read from memory, and mean the same there") {
  const Expr x = input("x", f16, {tokens, 64}), w = input("w", f16, {64});
  const Expr normed = x * rsqrt(row_mean(x * x) + 1e-6) * w + iota({64});
  const KernelSpec spec = KernelSpec("k").output("y", f32, partner(silu(normed), 32)).output("same", f32, partner(partner(x, 32), 32));
  const KernelSpec lowered = lower_partners(SpecGraph(spec));
  for (const Expr& node : nodes_in_order(lowered))
    if (node.op() == Op::partner) CHECK((view_of(node) || pairs_positions(node)));
  CHECK(lowered.outputs()[1].value.op() == Op::cast);
  Inputs inputs;
  for (const auto& [name, rows] : {std::pair("x", 3), std::pair("w", 0)}) {
    Tensor tensor(f16, rows ? std::vector<std::int64_t>{rows, 64} : std::vector<std::int64_t>{64});
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<float>(i * 7 % 23) - 11.0f);
    inputs.tensors.emplace(name, std::move(tensor));
  }
  const Outputs a = evaluate(spec, inputs), b = evaluate(lowered, inputs);
  for (const auto& [name, tensor] : a) CHECK(values_of(tensor) == values_of(b.at(name)));
}
