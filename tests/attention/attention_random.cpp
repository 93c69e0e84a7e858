// Random attention, executed: score expressions, heads, types, pages and lengths. KILN_ATTENTION_COUNT seeds from KILN_ATTENTION_FIRST on.
#include "gen/reference/random.h"
#include "tests/attention/attention_cases.h"
#include "tests/fuzz/seeds.h"
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>

namespace attention_random_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

const Expr minus_infinity = constant(-std::numeric_limits<float>::infinity());

// From 2 to 10 operations on the product, positions, and inputs that have one number for all, a key, a head, a sequence or each score.
class RandomScore {
public:
  RandomScore(std::uint64_t seed, const AttentionCase& of) : random_(seed), of_(of) {}
  Expr operator()(const ScoreTerms& t) {
    values_ = {t.product, t.product, t.key, t.query, t.head, t.sequence, t.lengths};
    const auto with_tokens = [&](Shape shape) {
      if (of_.tokens > 1) shape.insert(shape.begin() + 1, 1);
      return shape;
    };
    values_.push_back(input("slopes", random_.pick({f32, f16}), {of_.heads, 1}));
    values_.push_back(input("of_key", random_.pick({bf16, i32, f32}), {of_.keys}));
    const std::int64_t heads = random_.chance(50) ? of_.heads : 1;
    values_.push_back(input("mask", random_.pick({f16, u8, f32}), with_tokens({dynamic("sequences"), heads, of_.keys})));
    values_.push_back(input("of_sequence", f32, with_tokens({dynamic("sequences"), 1, 1})));
    values_.push_back(scalar("alpha"));
    for (auto left = random_.between(2, 10); left > 0; --left) values_.push_back(operation(t));
    const Expr moderate = clamp(values_.back(), -100.0, 100.0) * 0.1 + t.product;
    return random_.chance(50) ? moderate : select(condition(t), moderate, minus_infinity);
  }

private:
  Expr any() { return values_[static_cast<std::size_t>(random_.between(0, std::ssize(values_) - 1))]; }
  Expr condition(const ScoreTerms& t) {
    const Expr a = any(), b = any();
    switch (random_.between(0, 5)) {
    case 0: return t.key <= t.query;
    case 1: return logical_and(t.key <= t.query, t.query - t.key < static_cast<double>(random_.between(1, of_.keys)));
    case 2: return t.key >= scalar("first", i32);
    case 3: return logical_or(t.key < static_cast<double>(random_.between(1, 9)), t.query - t.key < 30.0);
    case 4: return logical_and(t.lengths - t.key <= 70.0, a < b + 0.5); // a may be b, and a < a is refused
    default: return a <= b;
    }
  }
  Expr operation(const ScoreTerms& t) {
    const Expr a = any(), b = any(), c = any(); // in this order with every compiler
    switch (random_.between(0, 9)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * random_.uniform(-1, 1);
    case 3: return tanh(a);
    case 4: return select(a <= b, c, random_.chance(60) ? minus_infinity : any());
    case 5: return min(a, b);
    case 6: return max(a, b);
    case 7: return abs(a) * 0.5;
    case 8: return sigmoid(a) * b;
    default: return select(condition(t), a, minus_infinity);
    }
  }

  Random random_;
  AttentionCase of_;
  std::vector<Expr> values_;
};

// A few sequences; some may be empty, of one key, at an edge of a step or a page, or full.
std::vector<std::int64_t> random_lengths(Random& random, const AttentionCase& c) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(1, 5)));
  for (std::int64_t& length : lengths) {
    const std::int64_t unit = c.page && random.chance(50) ? c.page : 32, edge = random.between(0, c.keys / unit) * unit;
    length = random.pick({std::int64_t{0}, std::int64_t{1}, c.keys, random.between(0, c.keys),
                          std::clamp(edge + random.between(-1, 1), std::int64_t{0}, c.keys)});
  }
  return lengths;
}

void check_random(std::uint64_t seed) {
  Random random(seed);
  const Target to = target(random.pick({"gfx942", "gfx950"}));
  AttentionCase c;
  const std::int64_t group = random.between(1, 16);
  c.kv_heads = random.between(1, 3);
  c.heads = group * c.kv_heads;
  c.tokens = random.chance(25) ? random.between(2, std::max<std::int64_t>(2, 32 / group)) : 1;
  c.d = random.pick({64, 80, 96, 128, 192, 256, 576});
  c.type = random.pick({f16, bf16});
  c.cache = random.pick({c.type, c.type, to.fp8_e4m3(), to.fp8_e5m2(), i8});
  c.page = random.pick({0, 0, 0, 16, 48, 64, 1, 2, 4, 8});
  c.keys = c.page ? c.page * random.between(1, 192 / c.page) : random.between(1, 192);
  c.log_sum_exp = random.chance(30);
  c.heads_first = random.chance(20);
  const auto of_scale = [&] {
    using enum KeyScale::Of;
    return size_bytes(c.cache) == 1 ? random.pick({none, all, head, key, key_and_head}) : none;
  };
  c.k_scale = of_scale();
  c.v_scale = of_scale();
  c.score = RandomScore(random.bits(), c);
  CAPTURE(seed);
  const auto lengths = random_lengths(random, c);
  check_on(to.arch(), c, lengths, seed, {fmt::format("workgroups={}", random.between(1, 12))});
}

} // namespace

// 222: the product of two numbers with one scale once waited for the next keys, whose scale lay in the register beside.
TEST_CASE("random attention that broke a contract") { check_random(222); }

TEST_CASE("random attention") {
  const std::uint64_t first = number_from("KILN_ATTENTION_FIRST", 4), count = number_from("KILN_ATTENTION_COUNT", 4);
  for (std::uint64_t seed = first; seed < first + count; ++seed) check_random(seed);
}

} // namespace attention_random_tests
