// Integers in the reference: i32 is exact modulo 2^32, Philox gives the numbers that its authors publish, and texts say the same.
#include "gen/error.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/spec/math.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace integers {
using namespace kiln;

namespace {

using Bits = std::vector<std::uint32_t>;

Bits evaluated(const Expr& value, const Bits& x) {
  Tensor tensor(i32, {static_cast<std::int64_t>(x.size())});
  for (std::size_t i = 0; i < x.size(); ++i) tensor.set_bits(static_cast<std::int64_t>(i), x[i]);
  const KernelSpec spec = KernelSpec("k").output("y", i32, value);
  const Inputs inputs{{{"x", tensor}}, {}};
  const Outputs outputs = evaluate(spec, inputs);
  CHECK(!find_mismatch(outputs, evaluate_bounds(spec, inputs)));
  Bits result;
  for (std::int64_t i = 0; i < outputs.at("y").size(); ++i) result.push_back(static_cast<std::uint32_t>(outputs.at("y").bits(i)));
  return result;
}

Expr five(std::int64_t count = 5) { return input("x", i32, {count}); }
const Bits awkward{0, 1, 0x80000000, 0xffffffff, 123456789};

} // namespace

TEST_CASE("i32 is computed modulo 2^32, beside i32 and whole numbers") {
  const Expr x = five();
  const auto each = [](auto f) {
    Bits result;
    std::ranges::transform(awkward, std::back_inserter(result), f);
    return result;
  };
  CHECK(evaluated(x * 1664525 + 1013904223, awkward) == each([](std::uint32_t v) { return v * 1664525 + 1013904223; }));
  CHECK(evaluated(-x - 4294967295, awkward) == each([](std::uint32_t v) { return 0 - v + 1; }));
  CHECK(evaluated(umulhi(x, 3528531795), awkward) ==
        each([](std::uint32_t v) { return std::uint32_t(std::uint64_t(v) * 3528531795 >> 32); }));
  CHECK(evaluated(bit_xor(bit_and(x, 0xffff), bit_or(x, 1)), awkward) == each([](std::uint32_t v) { return (v & 0xffff) ^ (v | 1); }));
  CHECK(evaluated(shift_right(x, 9) + shift_left(x, 35), awkward) == each([](std::uint32_t v) { return (v >> 9) + (v << 3); }));
  CHECK(evaluated(popcount(x), awkward) == Bits{0, 1, 1, 32, 16});
  CHECK(evaluated(max(min(x, 16777217), -16777217), awkward) == Bits{0, 1, 0xfeffffff, 0xffffffff, 16777217});
  CHECK(evaluated(select(x < 123456790, x, 7), awkward) == awkward);
}

TEST_CASE("i32 becomes f32 beside what is no whole number") {
  const Expr x = five();
  CHECK((x * 0.5).dtype() == f32);
  CHECK((x + input("y", f32, {5})).dtype() == f32);
  CHECK((x / 2).dtype() == f32);
  CHECK((cast(f32, x) + 16777217).operands()[1]->value == 16777216.0f);
  CHECK_THROWS_AS(bit_and(x, 0.5), UserError);
  CHECK_THROWS_AS(popcount(cast(f32, x)), UserError);
  CHECK(evaluated(x * 1.5, {3, 1, 0, 2, 100}) == Bits{4, 2, 0, 3, 150});
}

// kat_vectors of Random123, D. E. Shaw Research: philox4x32 of ten rounds.
TEST_CASE("Philox 4x32-10 gives its published numbers") {
  struct Known {
    Bits counter_and_key, words;
  };
  const Known all[] = {
      {{0, 0, 0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {Bits(6, 0xffffffff), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Known& known : all)
    for (std::size_t word = 0; word < 4; ++word) {
      const auto of = [&](std::size_t i) { return five(1) + Expr(static_cast<double>(known.counter_and_key[i])); };
      const Expr bits = philox(of(0), of(1), of(2), of(3), of(4), of(5), static_cast<std::int64_t>(word));
      CHECK(evaluated(bits, {0}) == Bits{known.words[word]});
    }
}

TEST_CASE("random bits are words of consecutive counters, and numbers of them lie between 0 and 1") {
  const Expr x = five();
  const Expr of_counter[] = {philox(1, 9, 0, 0, x, 0, 2), random_bits(6, 9, x)};
  CHECK(evaluated(of_counter[0], awkward) == evaluated(of_counter[1], awkward));
  const Bits ends = evaluated(cast(i32, uniform(x) * 16777216), {0, 0xffffffff, 0x80000000, 511, 512});
  CHECK(ends == Bits{1, 16777215, 8388609, 1, 3});
}

TEST_CASE("texts of integers") {
  const std::string text = R"(kernel k
input x: i32[8]
output y: i32[8] = add_i32(mul_i32(x, 1664525), 1013904223)
output z: i32[8] = bit_and(x, -16777217)
)";
  CHECK(to_text(parse_spec(text)) == text);
  CHECK(to_text(parse_spec(
            "kernel k\ninput x: i32[8]\noutput y: i32[8] = x * 1664525 + 1013904223\noutput z: i32[8] = bit_and(x, 4278190079)")) == text);
  const KernelSpec random = KernelSpec("k").output("y", f32, gumbel(random_bits(input("x", i32, {8}), 3, 7)));
  CHECK(parse_spec(to_text(random)) == random);
}

} // namespace integers
