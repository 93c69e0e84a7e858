// Integers, random numbers and the sampler's parts executed on both architectures: the same bits as the reference.
#include "gen/spec/math.h"
#include "tests/numeric/check_on_both.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace integers_numeric {
using namespace kiln;
using testing::check_on_both;

namespace {

const Dim lines = dynamic("rows");

} // namespace

TEST_CASE("every operation on i32 of elements, rows and launches") {
  const Expr x = input("x", i32, {lines, 1000}), y = input("y", i32, {lines, 1}), s = scalar("s", i32);
  KernelSpec spec("integers");
  int index = 0;
  for (const Op op : integer_ops())
    for (const auto& [a, b] : {std::pair(x, y), std::pair(y, x), std::pair(x, s), std::pair(y, s), std::pair(x, Expr(16777217))}) {
      const Expr operands[] = {a, b};
      spec.output(fmt::format("out{}", index++), i32, pointwise(op, std::span(operands, static_cast<std::size_t>(info(op).arity))));
      if (index % 10 == 0) check_on_both(std::exchange(spec, KernelSpec("integers")), {.rows = 3});
    }
  check_on_both(KernelSpec("k")
                    .output("lcg", i32, x * 1664525 + 1013904223)
                    .output("extremes", i32, clamp(max(x, y), min(y, s), 2147483647))
                    .output("chosen", i32, select(x < y, x, -y))
                    .output("equal", boolean, eq(x, y))
                    .output("real", f32, x * 0.5 + y)
                    .output("of_row", i32, y * 3 + 16777217),
                {.rows = 3});
}

TEST_CASE("a flat run of i32") {
  const Expr x = input("x", i32, {lines, 64}), y = input("y", i32, {});
  check_on_both(KernelSpec("k").output("a", i32, x * y - 123456789).output("b", f32, uniform(bit_xor(x, y))), {.rows = 7});
}

TEST_CASE("random bits and Gumbel noise by column and row, and of ranks") {
  const Expr seed = input("seed", i32, {lines, 1}), offset = input("offset", i32, {lines, 1}), x = input("x", f16, {lines, 130});
  const Expr bits = random_bits(cast(i32, iota({130})), offset, seed);
  check_on_both(
      KernelSpec("k").output("bits", i32, bits).output("u", f32, uniform(bits)).output("token", i32, row_argmax(x + gumbel(bits))),
      {.rows = 5});
  const Expr top = row_top(x, 5);
  check_on_both(KernelSpec("k")
                    .output("bits", i32, random_bits(cast(i32, top), offset, seed))
                    .output("sum", f32, row_cumsum(pick(x, top)) + iota({5})),
                {.rows = 5});
}

} // namespace integers_numeric
