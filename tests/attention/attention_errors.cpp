// Errors of attention: operands, what is not offered, score expressions, lengths and pages.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace attention_errors_tests {
using namespace kiln;

namespace {

// A UserError whose text has all of `parts`.
template <typename Provoke> void expect(Provoke provoke, std::initializer_list<std::string_view> parts) {
  try {
    provoke();
  } catch (const UserError& error) {
    const std::string what = error.what();
    CAPTURE(what);
    for (const std::string_view part : parts) CHECK_MESSAGE(what.find(part) != what.npos, part);
    CHECK(!error.remedy.empty());
    return;
  }
  FAIL_CHECK("no error: ", std::string(*parts.begin()));
}

const Dim sequences = dynamic("sequences");

struct Operands {
  Expr q, k, v, lengths;
};
Operands operands(std::int64_t heads, std::int64_t kv_heads, std::int64_t d, std::int64_t keys = 64) {
  const Shape cache = {sequences, keys, kv_heads, d};
  return {input("q", f16, {sequences, heads, d}), input("k", f16, cache), input("v", f16, cache), input("lengths", i32, {sequences, 1, 1})};
}
Plan plan_of(const Expr& result) { return make_plan(KernelSpec("k").output("o", f16, result), target("gfx942")); }
Expr plain(const Operands& x) { return attention(attention_scores(x.q, x.k), x.v, x.lengths); }

} // namespace

TEST_CASE("operands of attention") {
  const Operands x = operands(8, 2, 128);
  const Shape cache = {sequences, 64, 2, 128};
  expect([&] { attention_scores(x.q * 2.0, x.k); }, {"operation 'attention_scores', operand q", "it is a 'mul', not an input"});
  expect([&] { attention_scores(input("q", f32, {sequences, 8, 128}), x.k); }, {"operand q", "it is f32", "use f16 or bf16"});
  expect([&] { attention_scores(x.q, input("k", bf16, cache)); }, {"operand k", "it is bf16, and q is f16", "use f16, an fp8 or i8"});
  expect([&] { attention_scores(x.q, input("k", f16, {sequences, 64, 3, 128})); }, {"operand k", "it has 3 heads, and q 8"});
  expect([&] { attention_scores(x.q, input("k", f16, {sequences, 64, 2, 64})); }, {"operand k", "64 elements, those of q 128"});
  expect([&] { attention_scores(x.q, input("k", f16, {dynamic("others"), 64, 2, 128})); }, {"operand k", "it has others sequences"});
  expect([&] { attention_scores(x.q, input("k", f16, cache, Layout::strided)); }, {"operand k", "it is strided"});
  const Expr scores = attention_scores(x.q, x.k);
  expect([&] { attention(scores, input("v", f16, {sequences, 64, 2, 64}), x.lengths); }, {"operand v", "[sequences, 64, 2, 64]"});
  expect([&] { attention(scores, x.v, input("n", i32, {sequences})); }, {"operand lengths", "its shape is [sequences]"});
  expect([&] { attention(scores, x.v, input("n", i64, {sequences, 1, 1})); }, {"operand lengths", "it is i64", "use i32"});
  expect([&] { attention(x.q, x.v, x.lengths); }, {"operand scores", "not computed from attention_scores"});
  expect([&] { attention_scores(x.q, x.k, input("pages", i32, {sequences, dynamic("most")})); }, {"operand pages", "the latter a number"});
}

TEST_CASE("what attention does not offer says so") {
  expect([&] { plan_of(plain(operands(8, 2, 112))); }, {"heads have 112 elements", "64, 80, 96, 128, 192 or 256", "576"});
  expect([&] { plan_of(plain(operands(8, 1, 576))); }, {"heads have 576 elements", "576 with values that are their first 512"});
  const auto first_of_keys = [](std::int64_t d, std::int64_t n) {
    const Operands x = operands(8, 1, d);
    return attention(attention_scores(x.q, x.k), columns(x.k, 0, n), x.lengths);
  };
  expect([&] { plan_of(first_of_keys(128, 64)); }, {"values are 64 columns of keys of 128 elements", "columns(k, 0, 512) of keys of 576"});
  CHECK_NOTHROW(plan_of(first_of_keys(576, 512)));
  expect([&] { plan_of(plain(operands(96, 1, 128))); }, {"a head of k meets 96 rows of q", "prefill"});
  const Expr q = input("q", f16, {sequences, 16, 8, 128}), lengths = input("lengths", i32, {sequences, 1, 1, 1});
  const Operands x = operands(8, 1, 128);
  expect([&] { plan_of(attention(attention_scores(q, x.k), x.v, lengths)); },
         {"a head of k meets 128 rows of q: 8 heads of a group times 16 tokens", "at most 64", "prefill"});
  const Shape paged = {dynamic("pages_of_all"), 12, 2, 128};
  const Operands y = operands(8, 2, 128);
  const Expr scores = attention_scores(y.q, input("k", f16, paged), input("pages", i32, {sequences, 4}));
  expect([&] { plan_of(attention(scores, input("v", f16, paged), y.lengths)); }, {"pages have 12 keys", "1, 2, 4, 8 or a multiple of 16"});
}

TEST_CASE("score expressions that read what they may not") {
  const Operands x = operands(8, 2, 128);
  const Expr scores = attention_scores(x.q, x.k);
  expect([&] { plan_of(attention(scores - row_max(scores), x.v, x.lengths)); },
         {"operation 'row_max'", "score expression of attention", "its own key and query alone"});
  const Expr table = input("table", f32, {10, 64}), which = input("which", i32, {sequences, 1, 1});
  expect([&] { plan_of(attention(scores + gather(input("t", f32, {10, 1, 64}), which), x.v, x.lengths)); },
         {"operation 'gather'", "reads no other keys"});
  expect([&] { plan_of(attention(scores + input("m", f16, {sequences, 1, 64}, Layout::strided), x.v, x.lengths)); },
         {"input 'm'", "it is strided"});
  expect([&] { plan_of(attention(scores + input("m", f16, {sequences, 1, 63}), x.v, x.lengths)); }, {"63"});
  expect([&] { plan_of(attention(scores, x.v, x.lengths) + row_sum(x.q)); }, {"input 'q'", "attention and operation 'row_sum' use it"});
  const Expr o = attention(scores, x.v, x.lengths);
  expect([&] { plan_of(o / row_absmax(o)); }, {"operation 'row_absmax'", "epilogue of attention"});
  expect([&] { make_plan(KernelSpec("k").output("o", f16, o).output("s", f32, scores), target("gfx942")); },
         {"scores outside of attention"});
  expect(
      [&] { make_plan(KernelSpec("k").output("o", f16, o).output("p", f16, attention(scores * 2.0, x.v, x.lengths)), target("gfx942")); },
      {"two of 'attention'"});
}

TEST_CASE("conditions that never hold leave no key a weight") {
  const Operands x = operands(8, 2, 128);
  const Expr scores = attention_scores(x.q, x.k), key = iota({64}), none = constant(-std::numeric_limits<float>::infinity());
  const Expr slope = input("slope", f32, {8, 1});
  const auto under = [&](const Expr& condition) { return plan_of(attention(select(condition, scores, none) * 0.5, x.v, x.lengths)); };
  const auto never = [&](const Expr& condition, const std::string& name) {
    expect([&] { under(condition); },
           {"attention of kernel", "gives no key a weight", "'" + name + "' never holds", "leave the condition out"});
  };
  never(slope < slope, "lt");
  never(logical_and(key <= x.lengths, slope > slope), "gt");
  never(key >= key + 1.0, "ge");
  never(x.lengths - 2.0 > x.lengths - 2.0, "gt");
  CHECK_NOTHROW(under(slope <= slope)); // not of a NaN
  CHECK_NOTHROW(under(key + 1.0 > key));
  CHECK_NOTHROW(under(logical_or(slope < slope, key <= x.lengths)));
  CHECK_NOTHROW(under(key * 1.0 < x.lengths));
}

TEST_CASE("scales of caches") {
  const Operands x = operands(8, 2, 128);
  const Shape cache = {sequences, 64, 2, 128};
  const Expr k = input("k", e4m3fnuz, cache), v = input("v", e4m3fnuz, cache);
  const auto scale = [](DType type, Shape shape, Layout layout = Layout::contiguous) { return input("s", type, std::move(shape), layout); };
  const Shape each = {sequences, 64, 2, 1};
  for (const Shape& shape : {Shape{}, Shape{2, 1}, Shape{sequences, 64, 1, 1}, each})
    CHECK_NOTHROW(plan_of(attention(attention_scores(x.q, k * scale(f32, shape)), v * input("t", f32, shape), x.lengths)));
  expect([&] { attention_scores(x.q, k * scale(f16, each)); }, {"operation 'attention_scores', scale 's'", "it is f16", "use f32"});
  expect([&] { attention_scores(x.q, x.k * scale(f32, each)); }, {"scale 's'", "it is the scale of 'k', which is f16", "8 bits"});
  expect([&] { attention_scores(x.q, k * scale(f32, each, Layout::strided)); }, {"scale 's'", "it is strided"});
  expect([&] { attention_scores(x.q, k * scale(f32, {sequences, 1, 2, 1})); },
         {"scale 's'", "its shape is [sequences, 1, 2, 1]", "give it [], [2, 1], [sequences, 64, 1, 1] or [sequences, 64, 2, 1]"});
  expect([&] { attention_scores(x.q, k * scale(f32, {3, 1})); }, {"3"});
  expect([&] { attention_scores(x.q, k * scale(f32, {128})); }, {"operand k", "not of an input and a scale", "1 in the place of d"});
  const Expr scores = attention_scores(x.q, k);
  expect([&] { attention(scores, v * scale(f16, each), x.lengths); }, {"operation 'attention', scale 's'", "it is f16"});
}

TEST_CASE("columns of caches") {
  const Operands x = operands(8, 1, 576);
  const Expr scores = attention_scores(x.q, x.k);
  expect([&] { attention(scores, columns(x.k, 64, 512), x.lengths); }, {"operand v", "512 columns from 64 on", "columns(k, 0, n)"});
  expect([&] { attention(scores, columns(x.v, 0, 512), x.lengths); }, {"operand v", "512 columns of 'v', and k is 'k'"});
  expect([&] { attention_scores(x.q, columns(x.k, 0, 512)); }, {"operand k", "512 columns of 'k'"});
  expect([&] { columns(x.k, 0, 577); }, {"operation 'columns'", "do not lie in the operand's 576"});
  expect([&] { plan_of(columns(x.k, 0, 64)); }, {"operation 'columns'", "no attention", "a matrix product"});
  expect([&] { plan_of(plain(operands(8, 2, 128)) + row_sum(columns(input("y", f16, {sequences, 1, 8, 4}), 0, 2))); },
         {"operation 'columns'"});
}

TEST_CASE("outputs in the order of heads") {
  const Operands x = operands(8, 2, 128);
  const Expr o = plain(x);
  CHECK_NOTHROW(plan_of(heads_first(o)));
  expect([&] { heads_first(input("y", f16, {sequences, 128})); }, {"operation 'heads_first'", "[sequences, 128]", "[sequences, heads, n]"});
  expect([&] { plan_of(heads_first(o) * 2.0); }, {"operation 'heads_first'", "take its result", "the last one before an output"});
  expect([&] { plan_of(heads_first(input("y", f16, {sequences, 8, 128}))); },
         {"operation 'heads_first'", "no attention", "the order of its rows"});
  expect(
      [&] {
        make_plan(KernelSpec("k").output("o", f16, heads_first(o * input("gate", f16, {sequences, 8, 128})), {.in_place_of = "gate"}),
                  target("gfx942"));
      },
      {"output 'o' in place of 'gate'", "the order of heads", "memory of its own"});
  expect([&] { make_plan(KernelSpec("k").output("o", f16, heads_first(o), {.layout = Layout::strided}), target("gfx942")); },
         {"output 'o'", "in the order of heads, and strided", "Layout::contiguous"});
}

TEST_CASE("lengths and pages beyond what there is") {
  const Operands x = operands(2, 1, 64);
  const KernelSpec spec = KernelSpec("k").output("o", f16, plain(x));
  Inputs inputs = random_inputs(spec, 1, {.dynamic_size = 3});
  inputs.tensors.at("lengths").set_bits(2, 65);
  expect([&] { evaluate(spec, inputs); }, {"lengths 'lengths'", "length 2 is 65, and a sequence has room for 64 keys"});
  inputs.tensors.at("lengths").set_bits(2, static_cast<std::uint32_t>(-1));
  expect([&] { evaluate(spec, inputs); }, {"length 2 is -1"});

  const Shape cache = {dynamic("pages_of_all"), 16, 1, 64};
  const Expr scores = attention_scores(x.q, input("k", f16, cache), input("pages", i32, {sequences, 4}));
  const KernelSpec paged = KernelSpec("k").output("o", f16, attention(scores, input("v", f16, cache), x.lengths));
  Inputs given = random_inputs(paged, 1, {.dynamic_size = 3});
  for (int s = 0; s < 3; ++s) given.tensors.at("lengths").set_bits(s, 40);
  for (int i = 0; i < 12; ++i) given.tensors.at("pages").set_bits(i, static_cast<std::uint64_t>(i % 3));
  given.tensors.at("pages").set_bits(3, static_cast<std::uint32_t>(-1)); // beyond 40 keys: nobody reads it
  CHECK_NOTHROW(evaluate(paged, given));
  given.tensors.at("pages").set_bits(6, static_cast<std::uint32_t>(-1));
  expect([&] { evaluate(paged, given); }, {"page 2 of sequence 1 is -1, and k has 3 pages"});
  given.tensors.at("pages").set_bits(6, 3);
  expect([&] { evaluate(paged, given); }, {"page 2 of sequence 1 is 3, and k has 3 pages"});
}

} // namespace attention_errors_tests
