// evaluate_bounds: what a correct device may answer.
#include "gen/reference/evaluate_bounds.h"
#include "gen/error.h"
#include "gen/reference/evaluate_walk.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

struct RangeArithmetic {
  using Value = Range;
  std::int64_t addition_depth;
  bool absent_products;

  Range leaf(double value) const { return Range::exactly(value); }
  Range as_f32(const Range& value) const { return f32_of_integer(value); }
  Range pointwise(Op op, const Range* operands, int arity) const {
    return pointwise_range(op, {operands, static_cast<std::size_t>(arity)});
  }
  Range either(const Range& a, const Range& b) const { return join(a, b); }
  std::optional<double> certain(const Range& value) const { return value.lo == value.hi ? std::optional(value.lo) : std::nullopt; }
  Range between(double least, double most) const { return join(Range::exactly(least), Range::exactly(most)); }
  Range cast(const Node& cast, const Range& value) const { return cast_range(cast.dtype, cast.saturate, value); }
  static bool is_certain(const Range& x) { return x.lo == x.hi && !x.maybe_nan; }
  static bool is_bounded(const Range& x) { return x.has_numbers() && std::isfinite(x.lo) && std::isfinite(x.hi) && !x.maybe_nan; }
  double middle(const Range& x) const { return is_certain(x) ? x.lo : is_bounded(x) ? x.lo + (x.hi - x.lo) / 2 : 0; }
  double half_width(const Range& x) const {
    if (is_certain(x)) return 0;
    return is_bounded(x) ? (x.hi - x.lo) * (0.5 + 0x1p-50) : std::numeric_limits<double>::infinity();
  }
  Range product(const ProductRows& rows) const {
    Range range = product_range(rows, addition_depth);
    range.maybe_nan |= absent_products && std::ranges::any_of(rows.b, [](double x) { return std::isinf(x); });
    return range;
  }
  using Weights = AttentionWeights;
  Weights weights(std::span<const Range> scores, DType rounded_to) const { return attention_weights(scores, rounded_to); }
  Range weighted_sum(const Weights& w, std::span<const float> values, const detail::ValueRounding& rounding) const {
    if (rounding.most > 0 && std::ranges::any_of(values, [&](float v) { return !(std::fabs(static_cast<double>(v)) <= rounding.most); }))
      return Range::anything();
    return weighted_range(w, values, rounding.relative, rounding.absolute);
  }
  Range log_of_sum(const Weights& w) const { return log_of_sum_range(w); }
  std::vector<Range> top(std::span<const Range> elements, std::int64_t k) const { return top_columns(elements, k); }
  std::vector<Range> running_sums(std::span<const Range> elements) const { return running_sum_ranges(elements, addition_depth); }
  Range picked(std::span<const Range> elements, const Range& column) const {
    Range range = Range::none();
    for (double i = column.lo; i <= column.hi; i += 1) range = join(range, elements[static_cast<std::size_t>(i)]);
    return range;
  }
  Range reduce(Op op, std::span<const Range> elements) const { return reduction_range(op, elements, addition_depth); }
};

} // namespace

std::map<std::string, Bounds> evaluate_bounds(const KernelSpec& spec, const Inputs& inputs, const BoundsOptions& options) {
  auto grids = detail::Walk<RangeArithmetic>(spec, inputs, {options.addition_depth, options.absent_products}).run();
  std::map<std::string, Bounds> result;
  for (const Output& output : spec.outputs()) {
    auto& grid = grids.at(output.name);
    // An unrounded product that is stored as f32 is rounded by then; every other range already has numbers of its type.
    if (output.dtype == f32)
      for (Range& range : grid.values) range = cast_range(f32, true, range);
    result.emplace(output.name, Bounds{output.dtype, std::move(grid.shape), std::move(grid.values)});
  }
  return result;
}

std::string to_text(const Mismatch& mismatch) {
  return fmt::format("output '{}': element {} is {}, outside {}; {} elements are outside", mismatch.output, mismatch.index, mismatch.value,
                     to_text(mismatch.range), mismatch.count);
}

std::optional<Mismatch> find_mismatch(const Outputs& actual, const std::map<std::string, Bounds>& bounds) {
  for (const auto& [name_, bound] : bounds) {
    const auto tensor = actual.find(name_);
    const auto subject = fmt::format("output '{}'", name_);
    if (tensor == actual.end()) throw UserError(subject, "it is missing", "give every output of the spec");
    if (tensor->second.dtype() != bound.dtype || tensor->second.shape() != bound.shape)
      throw UserError(subject,
                      fmt::format("it is {}[{}], the spec says {}[{}]", to_string(tensor->second.dtype()),
                                  fmt::join(tensor->second.shape(), ", "), to_string(bound.dtype), fmt::join(bound.shape, ", ")),
                      "give a tensor of the spec's type and shape");
    std::optional<Mismatch> mismatch;
    for (std::int64_t i = 0; i < tensor->second.size(); ++i) {
      const double value = bound.dtype == i32 ? static_cast<double>(tensor->second.integer(i)) : static_cast<double>(tensor->second.at(i));
      const Range& range = bound.ranges[static_cast<std::size_t>(i)];
      if (range.contains(value)) continue;
      if (!mismatch) mismatch = Mismatch{name_, i, value, range, 0};
      ++mismatch->count;
    }
    if (mismatch) return mismatch;
  }
  return {};
}

} // namespace kiln
