// Range: casts, and reductions of rows and groups.
#include "gen/error.h"
#include "gen/reference/float_limits.h"
#include "gen/reference/range.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace kiln {
namespace {

constexpr double f32_rounding = 0x1p-24; // relative error of one operation

// The nearest f32 at or below / at or above.
float f32_below(double x) {
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) > x ? std::nextafter(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}
float f32_above(double x) { return -f32_below(-x); }

// The error of a sum of n terms, relative to the sum of magnitudes: at most `depth` f32 roundings e on every path make
// (1 + e)^depth - 1, and the f64 sum has an error of its own.
double sum_error(double n, double depth) { return std::expm1(depth * std::log1p(f32_rounding)) + n * 0x1p-52; }

Range with_error(double lo, double hi, double magnitudes, double error, bool maybe_nan = false) {
  if (magnitudes + error > largest_f32) return Range::anything(); // a partial sum may overflow
  return {lo - error, hi + error, maybe_nan};
}

// A sum with infinities of one sign and other terms, whose partial sums may overflow to the other sign.
Range with_infinity(bool positive, double magnitudes) {
  return magnitudes > largest_f32 ? Range::anything() : Range::exactly(positive ? infinity : -infinity);
}

// A sum of elements added so far.
struct Sum {
  double lo_ = 0, hi_ = 0, magnitudes = 0;
  std::int64_t count = 0;
  bool lo_infinite = false, hi_infinite = false; // ends of some element: below, above
  bool only_infinity = false, only_minus_infinity = false;
  bool has_minus_infinity = false, has_infinity = false, maybe_nan = false, has_numbers = true;

  void add(const Range& x) {
    ++count;
    maybe_nan |= x.maybe_nan;
    if (!x.has_numbers()) {
      has_numbers = false;
      return;
    }
    has_infinity |= x.hi == infinity;
    has_minus_infinity |= x.lo == -infinity;
    if (std::isinf(x.lo)) lo_infinite |= x.lo < 0;
    else lo_ += x.lo;
    if (std::isinf(x.hi)) hi_infinite |= x.hi > 0;
    else hi_ += x.hi;
    only_infinity |= x.lo == infinity;
    only_minus_infinity |= x.hi == -infinity;
    if (std::isfinite(x.lo) && std::isfinite(x.hi)) magnitudes += std::max(std::fabs(x.lo), std::fabs(x.hi));
  }
  double lo() const { return lo_infinite ? -infinity : only_infinity ? infinity : lo_; }
  double hi() const { return hi_infinite ? infinity : only_minus_infinity ? -infinity : hi_; }

  Range range(std::int64_t addition_depth) const {
    if (!has_numbers) return Range::nan();
    // One rounding more for products that were not rounded before.
    const auto depth = static_cast<double>(std::min(count - 1, addition_depth) + 1);
    const double error = count == 1 ? 0 : magnitudes * sum_error(static_cast<double>(count), depth);
    return with_error(lo(), hi(), magnitudes, error, maybe_nan || (has_infinity && has_minus_infinity));
  }
};

Range sum_range(std::span<const Range> elements, std::int64_t addition_depth) {
  Sum sum;
  for (const Range& x : elements) sum.add(x);
  return sum.range(addition_depth);
}

Range mean_range(std::span<const Range> elements, std::int64_t addition_depth) {
  Range r = sum_range(elements, addition_depth);
  if (!r.has_numbers()) return r;
  // Times the rounded 1 / n, or divided by n: at most two roundings, and a denormal result's last place.
  const auto n = static_cast<double>(elements.size());
  const auto widen = [&](double x, double sign) {
    return std::isinf(x) ? x : x / n + sign * (std::fabs(x / n) * 2.01 * f32_rounding + 0x1p-149);
  };
  return {widen(r.lo, -1), widen(r.hi, 1), r.maybe_nan};
}

// NaN elements are ignored, so an element that may be NaN cannot be relied on to push the maximum up.
Range max_range(std::span<const Range> elements, double neutral) {
  Range r{neutral, neutral};
  for (const Range& x : elements) {
    if (!x.has_numbers()) continue;
    if (!x.maybe_nan) r.lo = std::max(r.lo, x.lo);
    r.hi = std::max(r.hi, x.hi);
  }
  return r;
}

// The columns that may hold the largest element: those that may reach what some element reaches in any case, and before that one
// those that may equal it. Nothing beats minus infinity but a larger number: then it is column 0.
Range largest_column(std::span<const Range> elements) {
  double certain = -infinity;
  std::size_t first_certain = elements.size();
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (const Range& x = elements[i]; x.has_numbers() && !x.maybe_nan && x.lo > certain) certain = x.lo, first_certain = i;
  Range r = Range::none();
  if (first_certain == elements.size()) r = Range::exactly(0);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Range& x = elements[i];
    const bool may_win = x.has_numbers() && (i <= first_certain ? x.hi >= certain : x.hi > certain) && x.hi > -infinity;
    if (may_win) r = join(r, Range::exactly(static_cast<double>(i)));
  }
  return r;
}

Range negated(const Range& x) { return {-x.hi, -x.lo, x.maybe_nan}; }

// A number only if every element is one, so that each can be relied on.
Range marked_max_range(std::span<const Range> magnitudes) {
  Range r{0, 0};
  for (const Range& x : magnitudes) {
    if (!x.has_numbers()) return Range::nan();
    r = {std::max(r.lo, x.lo), std::max(r.hi, x.hi), r.maybe_nan || x.maybe_nan};
  }
  return r;
}

Range magnitude(const Range& x) {
  const Range operand[] = {x};
  return pointwise_range(Op::abs, operand);
}

} // namespace

Range reduction_range(Op op, std::span<const Range> elements, std::int64_t addition_depth) {
  std::vector<Range> changed;
  switch (row_form(op)) {
  case Op::row_sum: return sum_range(elements, addition_depth);
  case Op::row_mean: return mean_range(elements, addition_depth);
  case Op::row_max: return max_range(elements, -infinity);
  case Op::row_argmax: return largest_column(elements);
  case Op::row_argmin: std::ranges::transform(elements, std::back_inserter(changed), negated); return largest_column(changed);
  case Op::row_min: std::ranges::transform(elements, std::back_inserter(changed), negated); return negated(max_range(changed, -infinity));
  case Op::row_absmax: std::ranges::transform(elements, std::back_inserter(changed), magnitude); return max_range(changed, 0);
  case Op::row_absmax_nan: std::ranges::transform(elements, std::back_inserter(changed), magnitude); return marked_max_range(changed);
  default: throw InternalError(fmt::format("no range for the reduction '{}'", info(op).name));
  }
}

std::vector<Range> running_sum_ranges(std::span<const Range> elements, std::int64_t addition_depth) {
  std::vector<Range> sums;
  Sum sum;
  for (const Range& x : elements) sum.add(x), sums.push_back(sum.range(addition_depth));
  return sums;
}

std::vector<Range> top_columns(std::span<const Range> elements, std::int64_t k) {
  // A NaN counts as minus infinity.
  const auto low = [&](std::size_t i) { return elements[i].has_numbers() && !elements[i].maybe_nan ? elements[i].lo : -infinity; };
  const auto high = [&](std::size_t i) { return elements[i].has_numbers() ? elements[i].hi : -infinity; };
  if (std::ranges::all_of(elements, [](const Range& x) { return x.has_numbers() ? !x.maybe_nan && x.lo == x.hi : true; })) {
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater(), low);
    std::vector<Range> certain;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(k); ++rank)
      certain.push_back(Range::exactly(static_cast<double>(order[rank])));
    return certain;
  }
  std::vector<Range> columns(static_cast<std::size_t>(k), Range::none());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::size_t certain = 0, possible = 0; // elements that come before this one
    for (std::size_t other = 0; other < elements.size(); ++other) {
      if (other == i) continue;
      certain += low(other) > high(i) || (other < i && low(other) == high(i)) ? 1 : 0;
      possible += high(other) > low(i) || (other < i && high(other) == low(i)) ? 1 : 0;
    }
    for (std::size_t rank = certain; rank <= possible && rank < columns.size(); ++rank)
      columns[rank] = join(columns[rank], Range::exactly(static_cast<double>(i)));
  }
  return columns;
}

Range product_range(const ProductRows& rows, std::int64_t addition_depth) {
  if (std::isinf(rows.spread)) return Range::anything();
  const bool scaled = !rows.scales.empty();
  double sum = 0, magnitudes = 0, vanishing = 0;
  bool infinite = false, negative_infinite = false, nan = false, integers = !scaled;
  const auto beyond = [&](double x) { return rows.holds_scales && std::isfinite(x) && std::fabs(x) >= 0x1p128; };
  const auto tiny = [&](double x) { return rows.holds_scales && x != 0 && std::fabs(x) < 0x1p-126; };
  for (std::size_t i = 0; i < rows.a.size(); ++i) {
    const double a = rows.a[i], b = rows.b[i], scale = scaled ? static_cast<double>(rows.scales[i / rows.group]) : 1;
    if (beyond(a) || beyond(b)) return Range::anything();
    nan |= std::isnan(a * b) || std::isnan(scale);
    if (!nan && scaled && (std::isinf(a * b) || std::isinf(scale)))
      return Range::anything(); // times a partial sum of 0, or of the other sign
    if (!std::isfinite(a * b)) {
      (a * b > 0 ? infinite : negative_infinite) |= std::isinf(a * b);
      if (tiny(a) || tiny(b)) return Range::anything(); // an infinity times a number that may count as 0
      continue;
    }
    sum += a * b * scale;
    magnitudes += std::fabs(a * b * scale);
    if (tiny(a) || tiny(b)) vanishing += std::fabs(a * b);
    integers &= a * b == std::nearbyint(a * b);
  }
  if (nan || (infinite && negative_infinite)) return Range::nan();
  if (infinite || negative_infinite) return with_infinity(infinite, magnitudes);
  if (integers && vanishing == 0 && rows.spread == 0 && magnitudes <= 0x1p24)
    return Range::exactly(sum); // as every partial sum is a number of f32
  const auto n = static_cast<double>(rows.a.size());
  const double depth = scaled ? n + 1 : std::min(n - 1, static_cast<double>(addition_depth)) + 1;
  const double least = scaled ? 0x1p-149 : rows.holds_scales ? 0x1p-126 : 0; // of a sum that may be denormal
  return with_error(sum, sum, magnitudes,
                    (magnitudes + rows.spread) * sum_error(scaled ? 2 * n : n, depth) + vanishing + n * least + rows.spread);
}

// Rises with the magnitude; infinity becomes NaN.
static Range cast_to_power(const Range& x, Range result) {
  const double largest = std::max(std::fabs(x.lo), std::fabs(x.hi)),
               smallest = x.lo <= 0 && 0 <= x.hi ? 0 : std::min(std::fabs(x.lo), std::fabs(x.hi));
  const auto power = [](float value) { return static_cast<double>(round_to(e8m0, value)); };
  if (std::isinf(f32_above(largest))) result.maybe_nan = true;
  if (const float low = f32_below(smallest); std::isfinite(low)) {
    const float high = std::isinf(f32_above(largest)) ? std::numeric_limits<float>::max() : f32_above(largest);
    result = join(result, {power(low), power(high), result.maybe_nan});
  }
  return result;
}

Range cast_range(DType type, bool saturate, const Range& x) {
  Range result = Range::none();
  const auto add = [&](float value) {
    const float r = round_to(type, value, saturate);
    if (std::isnan(r)) result.maybe_nan = true;
    else result = join(result, {static_cast<double>(r), static_cast<double>(r), result.maybe_nan});
  };
  if (x.maybe_nan) add(std::numeric_limits<float>::quiet_NaN());
  if (x.maybe_nan && type == e2m1) add(-static_cast<float>(max_finite(e2m1))); // of either sign
  if (!x.has_numbers()) return result;
  if (type == boolean) { // not monotonic: anything but 0 is true
    if (x.lo <= 0 && 0 <= x.hi) add(0);
    if (x.lo != 0 || x.hi != 0) add(1);
    return result;
  }
  if (type == e8m0) return cast_to_power(x, result);
  if (type == i32) {
    const auto whole = [](float value) { return std::clamp(std::nearbyint(static_cast<double>(value)), -0x1p31, 0x1p31 - 1); };
    return join(result, {whole(f32_below(x.lo)), whole(f32_above(x.hi))});
  }
  add(f32_below(x.lo));
  add(f32_above(x.hi));
  // Ends that overflow to NaN hide the numbers on their near side.
  const double largest = max_finite(type);
  if (is_float(type) && x.hi > largest && x.lo <= largest) add(static_cast<float>(largest));
  if (is_float(type) && x.lo < -largest && x.hi >= -largest) add(static_cast<float>(-largest));
  return result;
}

} // namespace kiln
