// Range: everything that one value of a kernel may be on a device, given the documented error of each operation.
#pragma once
#include "gen/spec/expr.h"
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// Numbers from lo to hi, both included and either may be infinite, and NaN if maybe_nan. No numbers at all: lo > hi.
struct Range {
  double lo, hi;
  bool maybe_nan = false;

  static Range exactly(double value);
  static Range none(); // neither numbers nor NaN: the start of a union
  static Range nan();
  static Range anything();
  bool has_numbers() const { return lo <= hi; }
  bool contains(double value) const;
  bool operator==(const Range&) const = default;
};
Range join(const Range& a, const Range& b); // the union, with what lies between
std::string to_text(const Range& range);    // "[1, 1.0000001] or NaN"

// The range of a pointwise operation whose operands are anywhere in theirs. Follows info(op).accuracy; sums, products and
// IEEE quotients are correctly rounded; a product may stay unrounded (contraction to fma); a / b is a * rcp(b).
Range pointwise_range(Op op, std::span<const Range> operands);

// An i32 as an f32, rounded to nearest.
Range f32_of_integer(const Range& x);

// The range of a cast to `type`, whose numbers are those of the type.
Range cast_range(DType type, bool saturate, const Range& x);

// The range of a reduction. A sum may be taken in any order of f32 additions (or f32 fma, or exact sums of few products) in
// which no element passes through more than `addition_depth` of them.
Range reduction_range(Op op, std::span<const Range> elements, std::int64_t addition_depth);

// The ranges of the sums up to each element.
std::vector<Range> running_sum_ranges(std::span<const Range> elements, std::int64_t addition_depth);

// The columns that the k largest elements may have, by rank; those in between are in the range too.
std::vector<Range> top_columns(std::span<const Range> elements, std::int64_t k);

// A row of each operand of a product: the sum of a[i] * b[i], exact each.
struct ProductRows {
  std::span<const double> a, b;
  std::span<const float> scales = {}; // of `group` elements in sequence each: the sum of theirs is multiplied by it; none: of one
  std::size_t group = 1;
  bool holds_scales =
      false;         // numbers are times their scales, of MX formats: one below 2^-126 may count as 0, from 2^128 on nothing is certain
  double spread = 0; // how far the sum may lie off because numbers may have been rounded to either side
};
// Its range, with at most `addition_depth` roundings on every path. With scales no element passes through more than one rounding more than
// there are elements.
Range product_range(const ProductRows& rows, std::int64_t addition_depth);

// The weights that a kernel of attention may give the keys of a row, relative to the largest. docs/attention.md derives the errors.
struct AttentionWeights {
  bool known = true;                                                  // else some score is NaN or infinite, and nothing is said
  std::vector<double> of_key, error;                                  // 0 for keys without a score; the relative error of a weight
  double sum = 0, largest = -std::numeric_limits<double>::infinity(); // of the weights; the score that they are relative to
  double common = 0, absolute = 0; // relative error that sums have beside; error of each weight where it underflows
};
AttentionWeights attention_weights(std::span<const Range> scores, DType rounded_to);
// The sum of values times weights over the sum of the weights, and the logarithm of the latter.
// Values have errors of their own: relative ones, and absolute ones.
Range weighted_range(const AttentionWeights& weights, std::span<const float> values, double relative = 0, double absolute = 0);
Range log_of_sum_range(const AttentionWeights& weights);

} // namespace kiln
