// Range: interval arithmetic for pointwise operations. Ends are computed in f64 and pushed outwards.
#include "gen/reference/range.h"
#include "gen/reference/float_limits.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

// An f64 library function is off by at most a few units of 2^-53.
constexpr double f64_slack = 0x1p-50;

double down(double x) { return std::isinf(x) ? x : x - std::fabs(x) * f64_slack; }
double up(double x) { return std::isinf(x) ? x : x + std::fabs(x) * f64_slack; }
double rounded_to_f32(double x) { return static_cast<double>(static_cast<float>(x)); }

// The distance of neighbouring f32 numbers at `x`.
double f32_ulp(double x) {
  const double magnitude = std::clamp(std::fabs(x), smallest_normal_f32, largest_f32);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

// What an f32 holds of a number that left its range.
Range overflowed(Range r) {
  if (r.lo > largest_f32) r.lo = infinity;
  if (r.hi > largest_f32) r.hi = infinity;
  if (r.lo < -largest_f32) r.lo = -infinity;
  if (r.hi < -largest_f32) r.hi = -infinity;
  return r;
}

bool holds(const Range& r, double x) { return r.lo <= x && x <= r.hi; }
bool holds_infinity(const Range& r) { return r.has_numbers() && (std::isinf(r.lo) || std::isinf(r.hi)); }

void include(Range& r, double value) {
  if (std::isnan(value)) r.maybe_nan = true;
  else r = {std::min(r.lo, value), std::max(r.hi, value), r.maybe_nan};
}

Range with_flushed_denormals(Range x) {
  if (x.lo > 0 && x.lo < smallest_normal_f32) x.lo = 0;
  if (x.hi < 0 && x.hi > -smallest_normal_f32) x.hi = 0;
  return x;
}

// Correctly rounded: rounding is monotonic, so the ends are the rounded ends.
Range rounded(const Range& r) { return {rounded_to_f32(down(r.lo)), rounded_to_f32(up(r.hi)), r.maybe_nan}; }

// Rounded or not: what fma contraction may leave unrounded.
Range rounded_or_exact(const Range& r) {
  const Range ends = rounded(r);
  return {std::min(ends.lo, down(r.lo)), std::max(ends.hi, up(r.hi)), r.maybe_nan};
}

// The exact image of a function that is monotonic in each operand while the others stay: hull of the corners.
Range corners(double (*f)(double, double, double), std::span<const Range> x) {
  Range result = Range::none();
  for (unsigned corner = 0; corner < (1u << x.size()); ++corner) {
    double v[3] = {};
    for (std::size_t i = 0; i < x.size(); ++i) v[i] = corner >> i & 1 ? x[i].hi : x[i].lo;
    include(result, f(v[0], v[1], v[2]));
  }
  return result;
}

Range exact_product(const Range& a, const Range& b) {
  const Range operands[] = {a, b};
  Range result = corners(info(Op::mul).exact, operands);
  for (const auto& [zero, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (!holds(zero, 0)) continue;
    if (holds_infinity(other)) result.maybe_nan = true;
    if (other.lo < infinity && other.hi > -infinity) include(result, 0.0); // beside an infinite corner lies small times large
  }
  return result;
}

double at_end(const OpInfo& facts, double x) { return facts.exact(x, 0, 0); }

// Includes f(x); for an infinite x the largest finite operand too, so that an end that gives NaN leaves no gap.
void include_end(const OpInfo& facts, Range& result, double x) {
  include(result, at_end(facts, std::clamp(x, -largest_f32, largest_f32)));
  if (std::isinf(x)) include(result, at_end(facts, x));
}

// The exact image of a function of one operand.
Range image(const OpInfo& facts, Range x) {
  const Accuracy& accuracy = facts.accuracy;
  Range result = Range::none();
  if (accuracy.from_zero && x.lo < 0) {
    result.maybe_nan = true;
    if (x.hi < 0) return result;
    x.lo = 0;
  }
  switch (accuracy.curve) {
  case Curve::pole:
    if (holds(x, 0)) return {-infinity, infinity, result.maybe_nan};
    break;
  case Curve::turning:
    if (holds(x, accuracy.curve_at)) include(result, at_end(facts, accuracy.curve_at));
    break;
  case Curve::periodic: {
    if (std::isinf(x.lo) || std::isinf(x.hi)) return {-1, 1, true};
    const double middle = at_end(facts, x.lo / 2 + x.hi / 2), half = x.hi / 2 - x.lo / 2;
    return {std::max(-1.0, middle - half), std::min(1.0, middle + half), result.maybe_nan};
  }
  default: break;
  }
  include_end(facts, result, x.lo);
  include_end(facts, result, x.hi);
  // The reciprocal root of 0 is infinite with the sign of that 0, and a range does not know the sign of its zeros.
  if (accuracy.from_zero && accuracy.curve == Curve::falling && holds(x, 0)) result = join(result, {-infinity, infinity, false});
  return result;
}

// Widens an exact image by the documented error. Functions whose bound is relative keep the sign of their result.
Range widened(const Accuracy& accuracy, const Range& x, const Range& exact) {
  const double magnitude = std::min(largest_f32, std::max(std::fabs(x.lo), std::fabs(x.hi)));
  const double ulps = accuracy.ulp + accuracy.ulp_per_x * magnitude;
  const double absolute = accuracy.abs_error + accuracy.abs_per_x * magnitude;
  if (ulps == 0 && absolute == 0) return exact;
  Range r = exact;
  if (std::isfinite(r.lo)) r.lo = down(r.lo) - ulps * f32_ulp(r.lo) - absolute;
  if (std::isfinite(r.hi)) r.hi = up(r.hi) + ulps * f32_ulp(r.hi) + absolute;
  const bool keeps_sign = accuracy.abs_per_x == 0 && accuracy.abs_error < 0x1p-100;
  if (keeps_sign && exact.lo >= 0) r.lo = std::max(r.lo, 0.0);
  if (keeps_sign && exact.hi <= 0) r.hi = std::min(r.hi, 0.0);
  return overflowed(r);
}

Range unary(Op op, Range x) {
  const OpInfo& facts = info(op);
  if (facts.accuracy.flushes_operands) x = with_flushed_denormals(x);
  const Range exact = image(facts, x);
  return exact.has_numbers() ? widened(facts.accuracy, x, exact) : exact;
}

Range comparison(Op op, const Range& a, const Range& b) {
  const bool if_nan = op == Op::ne; // what NaN compares to
  if (!a.has_numbers() || !b.has_numbers()) return Range::exactly(if_nan ? 1 : 0);
  Range result = Range::none();
  if (op == Op::eq || op == Op::ne) {
    const bool may_equal = a.lo <= b.hi && b.lo <= a.hi;
    const bool must_equal = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    if (may_equal) include(result, op == Op::eq ? 1 : 0);
    if (!must_equal) include(result, op == Op::eq ? 0 : 1);
  } else {
    const Range operands[] = {a, b};
    result = corners(info(op).exact, operands);
  }
  if (a.maybe_nan || b.maybe_nan) include(result, if_nan ? 1 : 0);
  return result;
}

constexpr Range all_integers{-0x1p31, 0x1p31 - 1};

bool is_one(const Range& r) { return r.lo == r.hi; }
std::uint32_t bits_of(double integer) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(integer)); }

// Integers have neither NaN nor infinities. One of each gives one; else sums and products that stay in the range of i32 are intervals.
Range integer_operation(Op op, std::span<const Range> x) {
  const auto at = [&](std::size_t i) { return i < x.size() ? bits_of(x[i].lo) : 0; };
  if (std::ranges::all_of(x, is_one))
    return Range::exactly(static_cast<double>(static_cast<std::int32_t>(info(op).integer(at(0), at(1), at(2)))));
  Range result = all_integers;
  if (op == Op::add_i32) result = {x[0].lo + x[1].lo, x[0].hi + x[1].hi};
  if (op == Op::sub_i32) result = {x[0].lo - x[1].hi, x[0].hi - x[1].lo};
  if (op == Op::mul_i32) result = corners(info(Op::mul).exact, x); // below 2^62: what exceeds 2^53 is out of the range
  return result.lo < all_integers.lo || result.hi > all_integers.hi ? all_integers : result;
}

// A NaN operand of min and max is ignored.
Range extreme(Op op, const Range& a, const Range& b) {
  const Range operands[] = {a, b};
  Range result = a.has_numbers() && b.has_numbers() ? corners(info(op).exact, operands) : Range::none();
  if (a.maybe_nan) result = join(result, {b.lo, b.hi});
  if (b.maybe_nan) result = join(result, {a.lo, a.hi});
  result.maybe_nan = a.maybe_nan && b.maybe_nan;
  return result;
}

Range selected(const Range& condition, const Range& a, const Range& b) {
  Range result = Range::none();
  if (condition.hi != 0) result = join(result, a);
  if (condition.lo == 0) result = join(result, b);
  return result;
}

Range arithmetic(Op op, std::span<const Range> x) {
  switch (op) {
  case Op::mul: return rounded_or_exact(exact_product(x[0], x[1]));
  case Op::fma: {
    const Range sum[] = {exact_product(x[0], x[1]), x[2]};
    if (!sum[0].has_numbers()) return Range::nan();
    Range result = corners(info(Op::add).exact, sum);
    result.maybe_nan |= sum[0].maybe_nan;
    return result.has_numbers() ? rounded(result) : result;
  }
  // Defined as compositions, whose ranges are tighter than one bound for all operands.
  case Op::div: {
    const Range product[] = {x[0], unary(Op::rcp, x[1])};
    return pointwise_range(Op::mul, product);
  }
  case Op::pow: {
    const Range exponent[] = {x[1], pointwise_range(Op::log2, x.first(1))};
    const Range product[] = {pointwise_range(Op::mul, exponent)};
    return pointwise_range(Op::exp2, product);
  }
  case Op::div_exact: {
    if (holds(x[1], 0)) return {-infinity, infinity, holds(x[0], 0)};
    const Range result = corners(info(op).exact, x);
    return result.has_numbers() ? rounded(result) : result;
  }
  default: {
    const Range result = corners(info(op).exact, x);
    const bool exact = info(op).accuracy.ulp == 0;
    return exact || !result.has_numbers() ? result : rounded(result);
  }
  }
}

} // namespace

Range Range::exactly(double value) { return std::isnan(value) ? nan() : Range{value, value, false}; }
Range Range::none() { return {infinity, -infinity, false}; }
Range Range::nan() { return {infinity, -infinity, true}; }
Range Range::anything() { return {-infinity, infinity, true}; }
bool Range::contains(double value) const { return std::isnan(value) ? maybe_nan : lo <= value && value <= hi; }

Range join(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.maybe_nan || b.maybe_nan}; }

std::string to_text(const Range& range) {
  if (!range.has_numbers()) return range.maybe_nan ? "NaN" : "nothing";
  return fmt::format("[{}, {}]{}", range.lo, range.hi, range.maybe_nan ? " or NaN" : "");
}

Range f32_of_integer(const Range& x) { return {rounded_to_f32(x.lo), rounded_to_f32(x.hi)}; }

Range pointwise_range(Op op, std::span<const Range> x) {
  const OpKind kind = info(op).kind;
  if (kind == OpKind::integer) return integer_operation(op, x);
  if (kind == OpKind::compare) return comparison(op, x[0], x[1]);
  if (kind == OpKind::select) return selected(x[0], x[1], x[2]);
  if (op == Op::min || op == Op::max) return extreme(op, x[0], x[1]);
  if (op == Op::clamp) return extreme(Op::min, extreme(Op::max, x[0], x[1]), x[2]);
  const bool maybe_nan = std::ranges::any_of(x, &Range::maybe_nan);
  // A function of one operand may give a number for NaN, as relu does.
  const Range of_nan = x.size() == 1 ? Range::exactly(info(op).exact(std::nan(""), 0, 0)) : Range::nan();
  if (!std::ranges::all_of(x, &Range::has_numbers)) return of_nan;
  const Range result = x.size() == 1 ? unary(op, x[0]) : arithmetic(op, x);
  return maybe_nan ? join(result, of_nan) : result;
}

} // namespace kiln
