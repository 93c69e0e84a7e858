// evaluate: the reference on the CPU.
#include "gen/reference/evaluate.h"
#include "gen/error.h"
#include "gen/reference/evaluate_walk.h"
#include "gen/reference/float_limits.h"
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace kiln {
namespace detail {

Sizes concrete(const Shape& shape, const std::map<std::string, std::int64_t>& sizes) {
  Sizes result;
  for (const Dim& dim : shape) result.push_back(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size());
  return result;
}

std::int64_t element_count(const Sizes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

BroadcastIndex::BroadcastIndex(const Sizes& full, const Sizes& narrow) : same_(full == narrow), full_(full), strides_(full.size(), 0) {
  std::int64_t stride = 1;
  const std::size_t offset = full.size() - narrow.size();
  for (std::size_t i = narrow.size(); i-- > 0;) {
    if (narrow[i] != 1) strides_[offset + i] = stride;
    stride *= narrow[i];
  }
}

std::int64_t BroadcastIndex::operator()(std::int64_t index) const {
  if (same_) return index;
  std::int64_t result = 0;
  for (std::size_t i = full_.size(); i-- > 0;) {
    result += index % full_[i] * strides_[i];
    index /= full_[i];
  }
  return result;
}

} // namespace detail

namespace {

struct F32Arithmetic {
  using Value = double; // an f32, or an i32

  double leaf(double value) const { return value; }
  double as_f32(double value) const { return rounded(value); }
  static double rounded(double value) { return static_cast<double>(static_cast<float>(value)); }
  static float narrow(double value) { return static_cast<float>(value); }

  double pointwise(Op op, const double* operands, int arity) const {
    const auto at = [&](int i) { return i < arity ? operands[i] : 0; };
    if (const auto integer = info(op).integer) {
      const auto bits = [&](int i) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(at(i))); };
      return static_cast<double>(static_cast<std::int32_t>(integer(bits(0), bits(1), bits(2))));
    }
    if (arity > 0 && is_choice(op)) return info(op).exact(at(0), at(1), at(2)); // of integers too
    return static_cast<double>(info(op).reference(narrow(at(0)), narrow(at(1)), narrow(at(2))));
  }
  // Gives one of its operands, or compares them: the same in every precision.
  static bool is_choice(Op op) {
    return info(op).kind == OpKind::compare || op == Op::select || op == Op::min || op == Op::max || op == Op::clamp;
  }
  double either(double, double second) const { return second; }
  std::optional<double> certain(double value) const { return value; }
  double between(double least, double) const { return least; }

  double cast(const Node& cast, double value) const {
    if (cast.dtype == i32) return std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), -0x1p31, 0x1p31 - 1);
    return static_cast<double>(round_to(cast.dtype, narrow(value), cast.saturate));
  }

  double middle(double value) const { return value; }
  double half_width(double) const { return 0; }
  double product(const ProductRows& rows) const {
    double sum = 0;
    for (std::size_t first = 0; first < rows.a.size();) {
      const std::size_t end = rows.scales.empty() ? rows.a.size() : std::min(first + rows.group, rows.a.size());
      const double scale = rows.scales.empty() ? 1 : static_cast<double>(rows.scales[first / rows.group]);
      double of_group = 0;
      for (; first < end; ++first) of_group += rows.a[first] * rows.b[first];
      sum += of_group * scale;
    }
    return rounded(sum);
  }

  struct Weights {
    std::vector<double> of_key;
    double sum = 0, largest = -infinity;
  };
  Weights weights(std::span<const double> scores, DType) const {
    Weights w;
    for (const double score : scores)
      if (!(score < static_cast<double>(min_score))) w.largest = std::fmax(w.largest, score);
    for (const double score : scores) {
      w.of_key.push_back(score < static_cast<double>(min_score) ? 0 : std::exp(score - w.largest));
      w.sum += w.of_key.back();
    }
    return w;
  }
  double weighted_sum(const Weights& w, std::span<const float> values, const detail::ValueRounding&) const {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += w.of_key[i] * static_cast<double>(values[i]);
    return w.sum == 0 ? 0 : rounded(sum / w.sum);
  }
  double log_of_sum(const Weights& w) const { return rounded(w.largest + std::log(w.sum)); }

  static double column_of(std::span<const double> elements, bool largest) {
    std::size_t column = 0;
    double best = largest ? -infinity : infinity;
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (largest ? elements[i] > best : elements[i] < best) best = elements[i], column = i;
    return static_cast<double>(column);
  }

  static double rank_of(double x) { return std::isnan(x) ? -infinity : x; }

  std::vector<double> top(std::span<const double> elements, std::int64_t k) const {
    std::vector<double> columns;
    for (std::size_t i = 0; i < elements.size(); ++i) columns.push_back(static_cast<double>(i));
    const auto key = [&](double column) { return rank_of(elements[static_cast<std::size_t>(column)]); };
    std::ranges::stable_sort(columns, std::ranges::greater(), key);
    columns.resize(static_cast<std::size_t>(k));
    return columns;
  }
  std::vector<double> running_sums(std::span<const double> elements) const {
    std::vector<double> sums;
    double sum = 0;
    for (const double x : elements) sums.push_back(rounded(sum += x));
    return sums;
  }
  double picked(std::span<const double> elements, double column) const { return elements[static_cast<std::size_t>(column)]; }

  double reduce(Op op, std::span<const double> elements) const {
    if (op == Op::row_argmax || op == Op::row_argmin) return column_of(elements, op == Op::row_argmax);
    double sum = 0, largest = -infinity, smallest = infinity, magnitude = 0;
    bool nan = false;
    for (const double x : elements) {
      sum += x;
      largest = std::fmax(largest, x); // fmax and fmin ignore NaN
      smallest = std::fmin(smallest, x);
      magnitude = std::fmax(magnitude, std::fabs(x));
      nan |= std::isnan(x);
    }
    switch (row_form(op)) {
    case Op::row_sum: return rounded(sum);
    case Op::row_mean: return rounded(sum / static_cast<double>(elements.size()));
    case Op::row_max: return largest;
    case Op::row_min: return smallest;
    case Op::row_absmax: return magnitude;
    case Op::row_absmax_nan: return nan ? std::numeric_limits<double>::quiet_NaN() : magnitude;
    default: throw InternalError(fmt::format("no reference for the reduction '{}'", info(op).name));
    }
  }
};

void bind_shape(const Expr& input, const Tensor& tensor, std::map<std::string, std::int64_t>& sizes) {
  const auto subject = fmt::format("input '{}'", input->name);
  if (tensor.dtype() != input.dtype())
    throw UserError(subject, fmt::format("the tensor is {}, the spec says {}", to_string(tensor.dtype()), to_string(input.dtype())),
                    fmt::format("give a tensor of {}", to_string(input.dtype())));
  const auto misfit = [&](const std::string& fact) {
    throw UserError(
        subject, fmt::format("the tensor's shape [{}] does not fit {}: {}", fmt::join(tensor.shape(), ", "), to_text(input.shape()), fact),
        "give a tensor of the spec's shape");
  };
  if (tensor.shape().size() != input.shape().size()) misfit(fmt::format("it has {} dimensions", tensor.shape().size()));
  for (std::size_t i = 0; i < input.shape().size(); ++i) {
    const Dim& dim = input.shape()[i];
    const std::int64_t size = tensor.shape()[i];
    if (!dim.is_dynamic()) {
      if (size != dim.size()) misfit(fmt::format("{} is not {}", size, dim.size()));
      continue;
    }
    const auto [known, is_new] = sizes.try_emplace(dim.name(), size);
    if (!is_new && known->second != size) misfit(fmt::format("'{}' is {} elsewhere", dim.name(), known->second));
    if (size < dim.min().value_or(0) || size > dim.max().value_or(max_dim_size)) misfit(fmt::format("{} is outside {}", size, dim.text()));
  }
}

} // namespace

std::map<std::string, std::int64_t> dim_sizes(const KernelSpec& spec, const Inputs& inputs) {
  validate(spec);
  std::map<std::string, std::int64_t> sizes;
  for (const Expr& input : spec.inputs()) {
    const auto tensor = inputs.tensors.find(input->name);
    if (tensor == inputs.tensors.end())
      throw UserError(fmt::format("input '{}'", input->name), "no tensor was given for it",
                      fmt::format("give one of {}", type_text(input)));
    bind_shape(input, tensor->second, sizes);
  }
  for (const Expr& scalar : spec.scalars())
    if (!inputs.scalars.contains(scalar->name))
      throw UserError(fmt::format("scalar '{}'", scalar->name), "no number was given for it", "give one");
  return sizes;
}

Outputs evaluate(const KernelSpec& spec, const Inputs& inputs) {
  const auto grids = detail::Walk<F32Arithmetic>(spec, inputs, {}).run();
  Outputs outputs;
  for (const Output& output : spec.outputs()) {
    const auto& grid = grids.at(output.name);
    Tensor tensor(output.dtype, grid.shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      const double value = grid.values[static_cast<std::size_t>(i)];
      if (output.dtype == i32) tensor.set_bits(i, static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
      else tensor.set(i, static_cast<float>(value), false);
    }
    outputs.emplace(output.name, std::move(tensor));
  }
  return outputs;
}

} // namespace kiln
