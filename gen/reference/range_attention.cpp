// Range: weighted sums of attention.
#include "gen/reference/float_limits.h"
#include "gen/reference/range.h"
#include "gen/spec/attention.h"
#include <algorithm>
#include <cmath>

namespace kiln {
namespace {

constexpr double rounding = 0x1p-24; // relative error of one f32 operation
constexpr double log2_of_e = 1.4426950408889634;

} // namespace

AttentionWeights attention_weights(std::span<const Range> scores, DType rounded_to) {
  AttentionWeights w;
  double most = 0, least = infinity;
  const auto is_none = [](const Range& x) { return x.hi < static_cast<double>(min_score); };
  for (const Range& x : scores) {
    w.known &= !x.maybe_nan && x.has_numbers() && x.hi < infinity && (is_none(x) || x.lo >= static_cast<double>(min_score));
    if (!w.known) return w;
    if (is_none(x)) continue;
    const double middle = (x.lo + x.hi) / 2;
    w.largest = std::max(w.largest, middle);
    least = std::min(least, middle);
    most = std::max(most, std::fabs(middle));
  }
  const double spread = w.largest > -infinity ? w.largest - least : 0;
  // A weight is rounded to q's type: f16 toward zero, bf16 to nearest. Its exponent is a product and a sum of f32.
  const double of_type = rounded_to == f16 ? 0x1p-10 : 0x1p-8;
  // What is below f32's smallest normal number is flushed, relative to a reference that the weight may exceed by 2^8.
  w.absolute = rounded_to == f16 ? 0x1p-24 : 0x1p-117;
  for (const Range& x : scores) {
    const double middle = is_none(x) ? 0 : (x.lo + x.hi) / 2;
    w.of_key.push_back(is_none(x) ? 0 : std::exp(middle - w.largest));
    w.error.push_back(is_none(x) ? 0 : std::expm1((x.hi - x.lo) / 2 + (4 + 4 * log2_of_e * (most + spread)) * rounding) + of_type);
    w.sum += w.of_key.back();
  }
  // Sums: an addition a key. What was added up is brought to another reference when a score is 2^8 times the weight of the last one, and
  // where waves and workgroups meet: an exponential and a product each.
  const auto keys = static_cast<double>(scores.size());
  w.common = (keys + 4 * (spread + keys / 32 + 32)) * rounding;
  return w;
}

Range weighted_range(const AttentionWeights& w, std::span<const float> values, double relative, double absolute) {
  if (!w.known) return Range::anything();
  if (w.sum == 0) {
    for (const float v : values)
      if (!std::isfinite(v)) return Range::anything(); // weights of 0 times it
    return Range::exactly(0);
  }
  double sum = 0, magnitudes = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return Range::anything();
    sum += w.of_key[i] * static_cast<double>(values[i]);
    magnitudes += w.of_key[i] * std::fabs(static_cast<double>(values[i]));
  }
  const double result = sum / w.sum;
  double moved = 0, of_weights = 0; // by errors of weights: the sum of weights has the same, so that values near the result count little
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double distance = std::fabs(static_cast<double>(values[i]) - result);
    const double error = w.of_key[i] * w.error[i] + (w.of_key[i] > 0 ? w.absolute : 0);
    moved += error * distance + (w.of_key[i] + error) * (std::fabs(static_cast<double>(values[i])) * relative + absolute);
    of_weights += error;
  }
  const double least = w.sum * (1 - w.common) - of_weights;
  if (!(least > 0)) return Range::anything(); // NaN: a score is so large that its rounding alone decides who has all the weight
  const double error = (moved + w.common * (magnitudes + std::fabs(result) * w.sum)) / least + std::fabs(result) * 0x1p-21 + 0x1p-126;
  return {result - error, result + error, false};
}

Range log_of_sum_range(const AttentionWeights& w) {
  if (!w.known) return Range::anything();
  if (w.sum == 0) return Range::exactly(-infinity);
  double of_weights = 0;
  for (std::size_t i = 0; i < w.of_key.size(); ++i) of_weights += w.of_key[i] * w.error[i] + (w.of_key[i] > 0 ? w.absolute : 0);
  const double relative = of_weights / w.sum + w.common;
  if (!(relative < 1)) return Range::anything(); // NaN too
  const double value = w.largest + std::log(w.sum),
               error = -std::log1p(-relative) + (std::fabs(value) + std::fabs(w.largest) + 16) * 0x1p-21;
  return {value - error, value + error, false};
}

} // namespace kiln
