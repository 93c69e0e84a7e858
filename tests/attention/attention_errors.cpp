// Errors of attention: operands, what is not offered, score expressions, lengths and pages.
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random_spec.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include <doctest/doctest.h>
#include <initializer_list>
#include <string>
#include <string_view>

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
  expect([&] { plan_of(plain(operands(8, 2, 112))); }, {"heads have 112 elements", "64, 80, 96, 128, 192 or 256"});
  expect([&] { plan_of(plain(operands(96, 1, 128))); }, {"a head of k meets 96 rows of q", "prefill"});
  const Expr q = input("q", f16, {sequences, 16, 8, 128}), lengths = input("lengths", i32, {sequences, 1, 1, 1});
  const Operands x = operands(8, 1, 128);
  expect([&] { plan_of(attention(attention_scores(q, x.k), x.v, lengths)); },
         {"a head of k meets 128 rows of q: 8 heads of a group times 16 tokens", "at most 64", "prefill"});
  const Shape paged = {dynamic("pages_of_all"), 8, 2, 128};
  const Operands y = operands(8, 2, 128);
  const Expr scores = attention_scores(y.q, input("k", f16, paged), input("pages", i32, {sequences, 4}));
  expect([&] { plan_of(attention(scores, input("v", f16, paged), y.lengths)); }, {"pages have 8 keys", "a multiple of 16"});
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
