// Score expressions and epilogues of attention, executed: what they say about the keys is right, and keys without a weight are not read.
#include "gen/families/schedule.h"
#include "tests/attention/attention_cases.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>

namespace attention_scores_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

const Expr none = constant(-std::numeric_limits<float>::infinity());

Expr causal(const ScoreTerms& t) { return select(t.key <= t.query, t.product, none); }
Expr window(const ScoreTerms& t) { return select(logical_and(t.key <= t.query, t.query - t.key < 40.0), t.product, none); }
Expr alibi(const ScoreTerms& t) { return t.product + input("slopes", f32, {8, 1}) * (t.key - t.query); }
Expr soft_cap(const ScoreTerms& t) { return tanh(t.product / 30.0) * 30.0; }
// The first keys and the last ones.
Expr first_and_last(const ScoreTerms& t) { return select(logical_or(t.key<4.0, t.key> t.query - 20.0), t.product, none); }
Expr masked(const ScoreTerms& t) { return t.product + input("mask", f16, {dynamic("sequences"), 1, 160}) * input("per_key", f32, {160}); }
// Keys of the same document as the last one.
Expr documents(const ScoreTerms& t) {
  const Expr document = input("document", i32, {dynamic("sequences"), 1, 160}), last = input("last", i32, {dynamic("sequences"), 1, 1});
  return select(abs(document - last) < 60.0, t.product + t.head * 0.125 - t.sequence, none);
}

const std::vector<std::int64_t> lengths = {0, 1, 32, 45, 100, 160};

std::string emitted(const AttentionCase& c) {
  const Target to = target("gfx942");
  const Plan plan = make_plan(attention_spec(c), to);
  return emit_source(plan, choose_schedule(plan, to), to).text;
}

} // namespace

TEST_CASE("causal, with several queries a sequence") { check_somewhere({.tokens = 3, .keys = 160, .score = causal}, {3, 5, 33, 160}, 1); }
TEST_CASE("a sliding window") { check_somewhere({.score = window, .log_sum_exp = true}, lengths, 2); }
TEST_CASE("ALiBi and a soft cap") {
  check_somewhere({.score = [](const ScoreTerms& t) { return soft_cap({alibi(t), t.key, t.head, t.sequence, t.query, t.lengths}); }},
                  lengths, 3);
}
TEST_CASE("the first and the last keys") { check_somewhere({.score = first_and_last}, lengths, 4); }
TEST_CASE("a mask tensor and a vector over the keys") { check_somewhere({.score = masked}, lengths, 5); }
TEST_CASE("documents, heads and sequences") { check_somewhere({.score = documents, .log_sum_exp = true}, lengths, 6); }

TEST_CASE("sinks, a gate and a scale of the output") {
  AttentionCase c{.heads = 8, .kv_heads = 2, .keys = 96};
  const Dim sequences = dynamic("sequences");
  const Expr q = input("q", f16, {sequences, 8, 128}), k = input("k", f16, {sequences, 96, 2, 128}),
             v = input("v", f16, {sequences, 96, 2, 128});
  const Expr n = input("lengths", i32, {sequences, 1, 1}), scores = attention_scores(q, k) * 0.0884;
  // A sink is a score more, of no key: exp(sink) in the sum of weights.
  const Expr with_sink = attention(scores, v, n) * sigmoid(log_sum_exp(scores, n) - input("sink", f32, {8, 1}));
  for (const std::string_view arch : known_archs()) {
    const Target to = target(arch);
    const KernelSpec spec =
        KernelSpec("gated").output("o", to.fp8(), with_sink * silu(input("gate", f16, {sequences, 8, 128})) / input("scale", f32, {}));
    const std::string wrong = wrong_attention(spec, build_attention(spec, to), attention_inputs(spec, c, {0, 40, 96}, 7));
    CHECK_MESSAGE(wrong.empty(), wrong);
    if (!compares_all()) break;
  }
}

// The region is what the kernel reads: with NaN in all keys before the window the result stays what it is.
TEST_CASE("keys before a window are not read") {
  const AttentionCase c{.heads = 4, .kv_heads = 2, .score = window};
  const KernelSpec spec = attention_spec(c);
  const BuiltKernel built = build_attention(spec, target("gfx950"));
  const Inputs inputs = attention_inputs(spec, c, {160, 100}, 8);
  Inputs poisoned = inputs;
  for (const auto& [sequence, length] : {std::pair{0, 160}, {1, 100}})
    for (const char* name : {"k", "v"}) {
      Tensor& tensor = poisoned.tensors.at(name);
      const std::int64_t first = (length - 40) / 32 * 32, key = 2 * 128; // whole steps before the window
      for (std::int64_t i = sequence * 160 * key; i < (sequence * 160 + first) * key; ++i)
        tensor.set(i, std::numeric_limits<float>::quiet_NaN());
    }
  const std::string wrong = wrong_attention(spec, built, inputs);
  CHECK_MESSAGE(wrong.empty(), wrong);
  CHECK(outputs_of(spec, built, inputs).at("o").data() == outputs_of(spec, built, poisoned).at("o").data());
}

TEST_CASE("what comparisons with the key's position say") {
  const auto says = [](const Score& score, std::int64_t tokens, std::string_view expected) {
    const std::string text = emitted({.tokens = tokens, .score = score});
    const std::size_t at = text.find("return ") + 7;
    CHECK(text.substr(at, text.find(';', at) - at) == expected);
  };
  says([](const ScoreTerms& t) { return t.product; }, 1, "0u");
  says(causal, 3, "0u");
  says(window, 1, "first_key_from(-40.0f + 1.0f * static_cast<f32>(length), length)");
  says(window, 3, "first_key_from(-42.0f + 1.0f * static_cast<f32>(length) + 1.0f * 0.0f, length)");
  says(first_and_last, 1, "0u");
  says([](const ScoreTerms& t) { return select(t.key >= scalar("first", i32), t.product, none) * 2.0 + t.head; }, 1,
       "first_key_from(-0.0f + 1.0f * static_cast<f32>(first), length)");
  says([](const ScoreTerms& t) { return select(t.key * 0.5 >= t.query, t.product, none); }, 1, "0u"); // not understood
}

} // namespace attention_scores_tests
