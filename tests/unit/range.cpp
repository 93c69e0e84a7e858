// Range: that it holds every value a device may produce, operation by operation, and follows infinities and NaN.
#include "gen/reference/range.h"
#include "gen/reference/random.h"
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

using namespace kiln;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// A number of any magnitude, zeros and small integers among them.
float any_float(Random& random) {
  switch (random.between(0, 4)) {
  case 0: return static_cast<float>(random.between(-4, 4));
  case 1: return static_cast<float>(std::ldexp(random.uniform(-1, 1), static_cast<int>(random.between(-140, 128))));
  default: return static_cast<float>(random.uniform(-12, 12));
  }
}

Range any_range(Random& random, bool is_bool) {
  if (is_bool) {
    const auto a = static_cast<double>(random.between(0, 1)), b = static_cast<double>(random.between(0, 1));
    return {std::min(a, b), std::max(a, b), false};
  }
  const auto a = static_cast<double>(any_float(random));
  switch (random.between(0, 3)) {
  case 0: return Range::exactly(a);
  case 1: return {a, a + std::fabs(a) * random.uniform(0, 1e-5), random.chance(10)};
  default: {
    const auto b = static_cast<double>(any_float(random));
    return {std::min(a, b), std::max(a, b), random.chance(10)};
  }
  }
}

// An f32 inside `range`, its ends more often than not.
float sample(const Range& range, Random& random) {
  if (range.maybe_nan && random.chance(20)) return std::numeric_limits<float>::quiet_NaN();
  const double x = random.chance(30) ? range.lo : random.chance(40) ? range.hi : random.uniform(0, 1) * (range.hi - range.lo) + range.lo;
  const auto rounded = static_cast<float>(x);
  if (static_cast<double>(rounded) < range.lo) return std::nextafter(rounded, std::numeric_limits<float>::infinity());
  if (static_cast<double>(rounded) > range.hi) return std::nextafter(rounded, -std::numeric_limits<float>::infinity());
  return rounded;
}

bool is_bool_operand(const OpInfo& facts, int operand) {
  return facts.kind == OpKind::logic || (facts.kind == OpKind::select && operand == 0);
}

Range of(Op op, std::initializer_list<Range> operands) { return pointwise_range(op, {operands.begin(), operands.size()}); }

} // namespace

TEST_CASE("the range of every operation holds its reference at every operand") {
  Random random(7);
  for (const Op op : pointwise_ops()) {
    const OpInfo& facts = info(op);
    CAPTURE(facts.name);
    for (int trial = 0; trial < 3000; ++trial) {
      std::vector<Range> operands;
      for (int i = 0; i < facts.arity; ++i) operands.push_back(any_range(random, is_bool_operand(facts, i)));
      const Range result = pointwise_range(op, operands);
      float x[3] = {};
      for (int i = 0; i < facts.arity; ++i) {
        const auto& operand = operands[static_cast<std::size_t>(i)];
        x[i] = sample(operand, random);
        if (!(static_cast<double>(x[i]) >= operand.lo && static_cast<double>(x[i]) <= operand.hi) && !std::isnan(x[i]))
          x[i] = static_cast<float>(operand.lo);
      }
      const float reference = facts.reference(x[0], x[1], x[2]);
      // The order of clamp's limits is the caller's promise.
      if (op == Op::clamp && !(x[1] <= x[2])) continue;
      if (!result.contains(static_cast<double>(reference)))
        FAIL("of " << x[0] << ", " << x[1] << ", " << x[2] << ": " << reference << " is outside " << to_text(result));
    }
  }
}

TEST_CASE("exact operations on exact operands are exact") {
  CHECK(of(Op::max, {Range::exactly(1), Range::exactly(2)}) == Range::exactly(2));
  CHECK(of(Op::neg, {Range::exactly(1)}) == Range::exactly(-1));
  CHECK(of(Op::add, {Range::exactly(1), Range::exactly(2)}) == Range::exactly(3));
  CHECK(of(Op::div_exact, {Range::exactly(1), Range::exactly(4)}) == Range::exactly(0.25));
  CHECK(of(Op::floor, {{1.5, 2.5}}) == Range{1, 2});
  CHECK(of(Op::abs, {{-3, 2}}) == Range{0, 3});
}

TEST_CASE("inexact operations are wider by what they document") {
  const Range product = of(Op::mul, {Range::exactly(double(1.1f)), Range::exactly(double(1.3f))});
  CHECK(product.hi - product.lo > 0); // rounded or not: contraction leaves both possible
  CHECK(product.hi - product.lo < 0x1p-23);
  const Range quotient = of(Op::div, {Range::exactly(1), Range::exactly(3)});
  CHECK(quotient.hi - quotient.lo > 0x1p-25);
  CHECK(quotient.hi - quotient.lo < 8 * 0x1p-25);
  const Range sine = of(Op::sin, {Range::exactly(1)});
  CHECK(sine.hi - sine.lo > 0x1p-11);
  CHECK(sine.hi - sine.lo < 0x1p-9);
  const Range far = of(Op::exp, {Range::exactly(80)}), near = of(Op::exp, {Range::exactly(0.5)});
  CHECK((far.hi - far.lo) / far.hi > 10 * (near.hi - near.lo) / near.hi); // grows with |x|
}

TEST_CASE("turning points, poles and domains") {
  const Range silu = of(Op::silu, {{-3, 0}});
  CHECK(silu.lo < -0.278464);
  CHECK(silu.lo > -0.2785);
  CHECK(of(Op::rcp, {{-1, 1}}) == Range{-inf, inf});
  CHECK(of(Op::rcp, {{1, 2}}).lo > 0.4999);
  const Range root = of(Op::sqrt, {{-1, 4}});
  CHECK(root.maybe_nan);
  CHECK(root.lo == 0);
  CHECK(root.hi < 2.000001);
  CHECK(of(Op::log, {{-2, -1}}) == Range::nan());
  CHECK(of(Op::rsqrt, {{0, 4}}).hi == inf);
  CHECK(of(Op::rsqrt, {Range::exactly(0x1p-130)}).hi == inf); // a denormal may be taken as 0
}

TEST_CASE("infinities and NaN") {
  CHECK(of(Op::add, {Range::exactly(inf), Range::exactly(-inf)}) == Range::nan());
  CHECK(of(Op::mul, {{-1, 1}, Range::exactly(inf)}).maybe_nan);
  CHECK(!of(Op::mul, {{1, 2}, Range::exactly(inf)}).maybe_nan);
  CHECK(of(Op::mul, {Range::exactly(1e30), Range::exactly(1e30)}).hi == inf);
  CHECK(of(Op::add, {Range::nan(), {1, 2}}) == Range::nan());
  CHECK(of(Op::max, {Range::nan(), {1, 2}}) == Range{1, 2});
  CHECK(of(Op::max, {{5, 6, true}, {1, 2}}) == Range{1, 6});
  CHECK(of(Op::relu, {Range::nan()}) == Range::exactly(0));
  CHECK(of(Op::clamp, {Range::nan(), Range::exactly(0), Range::exactly(1)}).contains(0));
  CHECK(of(Op::lt, {Range::nan(), {1, 2}}) == Range::exactly(0));
  CHECK(of(Op::ne, {Range::nan(), {1, 2}}) == Range::exactly(1));
  CHECK(of(Op::lt, {{1, 3}, {2, 4}}) == Range{0, 1});
  CHECK(of(Op::eq, {{1, 2}, {2, 3}}) == Range{0, 1});
  CHECK(of(Op::eq, {{1, 2}, {3, 4}}) == Range::exactly(0));
  CHECK(of(Op::select, {{0, 1}, {1, 2}, {5, 6}}) == Range{1, 6});
  CHECK(of(Op::select, {Range::exactly(1), {1, 2}, Range::nan()}) == Range{1, 2});
}

TEST_CASE("casts") {
  CHECK(cast_range(f16, true, {1.0001, 1.0002}) == Range::exactly(1));
  CHECK(cast_range(f16, true, {1.0004, 1.0006}) == Range{1, 1.0009765625}); // the middle lies between
  CHECK(cast_range(f16, true, {1, 1e6}).hi == inf);
  CHECK(cast_range(e4m3fn, true, {1, 1e6}) == Range{1, 448});
  CHECK(cast_range(e4m3fnuz, true, {-1e6, 1}) == Range{-240, 1});
  CHECK(cast_range(e4m3fn, false, {1, 1e6}) == Range{1, 448, true});
  CHECK(cast_range(e4m3fn, false, {1e5, 1e6}) == Range::nan());
  CHECK(cast_range(e4m3fn, true, {1, inf}) == Range{1, 448, true});
  CHECK(cast_range(e5m2, true, {1, inf}) == Range{1, inf});
  CHECK(cast_range(i8, true, {-1000.0, 2.5, true}) == Range{-128, 2});
  CHECK(cast_range(boolean, true, {-1, 1}) == Range{0, 1});
  CHECK(cast_range(boolean, true, Range::exactly(0)) == Range::exactly(0));
  CHECK(cast_range(boolean, true, {1, 2}) == Range::exactly(1));
  CHECK(cast_range(boolean, true, Range::nan()) == Range::exactly(1));
}

TEST_CASE("any order of f32 additions lies within the range of the sum") {
  Random random(11);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> terms;
    std::vector<Range> ranges;
    for (std::int64_t n = random.between(1, 300); n > 0; --n) {
      terms.push_back(static_cast<float>(random.uniform(-1, 1) * std::ldexp(1.0, static_cast<int>(random.between(-10, 10)))));
      ranges.push_back(Range::exactly(static_cast<double>(terms.back())));
    }
    const Range range = reduction_range(Op::row_sum, ranges, 1 << 20);
    const Range mean = reduction_range(Op::row_mean, ranges, 1 << 20);
    for (int order = 0; order < 4; ++order) {
      // Adds two random partial sums until one is left: any tree, the worst chains included.
      std::vector<float> partial = terms;
      while (partial.size() > 1) {
        const auto i =
            order == 0 ? partial.size() - 2 : static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(partial.size()) - 2));
        partial[i] += partial.back();
        partial.pop_back();
      }
      CHECK(range.contains(static_cast<double>(partial[0])));
      const auto n = static_cast<float>(terms.size());
      CHECK(mean.contains(static_cast<double>(partial[0] / n)));
      CHECK(mean.contains(static_cast<double>(partial[0] * (1 / n))));
    }
  }
}

TEST_CASE("reductions of infinities, NaN and uncertain elements") {
  const auto reduce = [](Op op, std::vector<Range> elements) { return reduction_range(op, elements, 1 << 20); };
  CHECK(reduce(Op::row_sum, {Range::exactly(1)}) == Range::exactly(1));
  CHECK(reduce(Op::row_sum, {Range::exactly(1), Range::nan()}) == Range::nan());
  CHECK(reduce(Op::row_sum, {Range::exactly(inf), Range::exactly(1)}).lo == inf);
  CHECK(reduce(Op::row_sum, {Range::exactly(inf), Range::exactly(-inf)}).maybe_nan);
  CHECK(reduce(Op::row_sum, {Range::exactly(3e38), Range::exactly(3e38)}) == Range::anything());
  CHECK(reduce(Op::row_max, {{1, 2}, {0, 5}}) == Range{1, 5});
  CHECK(reduce(Op::row_max, {{1, 2}, {3, 5, true}}) == Range{1, 5});
  CHECK(reduce(Op::row_max, {Range::nan(), Range::exactly(2)}) == Range::exactly(2));
  CHECK(reduce(Op::row_max, {Range::nan()}) == Range::exactly(-inf));
  CHECK(reduce(Op::row_min, {{1, 2}, {0, 5}}) == Range{0, 2});
  CHECK(reduce(Op::row_absmax, {{-7, 2}, {0, 5}}) == Range{0, 7});
  CHECK(reduce(Op::group_absmax, {{-7, -6}, {0, 5}}) == Range{6, 7});
  CHECK(reduce(Op::row_absmax, {Range::nan()}) == Range::exactly(0));
}

TEST_CASE("a product with an infinity: partial sums of the other terms may overflow to the other sign") {
  const std::vector<double> a = {inf, -3e38, -3e38}, b = {1, 2, 2}, small = {1, 0.25, 0.25};
  const Range any = product_range({.a = a, .b = b}, 3);
  CHECK((any.maybe_nan && any.lo == -inf));
  const Range only = product_range({.a = a, .b = small}, 3);
  CHECK((!only.maybe_nan && only.lo == inf));
  CHECK(product_range({.a = a, .b = b, .holds_scales = true}, 3).maybe_nan);
}
