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
  using Value = float;

  float leaf(float value) const { return value; }

  float pointwise(Op op, const float* operands, int arity) const {
    return info(op).reference(operands[0], arity > 1 ? operands[1] : 0, arity > 2 ? operands[2] : 0);
  }

  float either(float, float second) const { return second; }
  std::optional<double> certain(float value) const { return static_cast<double>(value); }
  float between(double least, double) const { return static_cast<float>(least); }

  float cast(const Node& cast, float value) const { return round_to(cast.dtype, value, cast.saturate); }

  float product(const ProductRows& rows) const {
    double sum = 0;
    for (std::size_t first = 0; first < rows.a.size();) {
      const std::size_t end = rows.scales.empty() ? rows.a.size() : std::min(first + rows.group, rows.a.size());
      const double scale = rows.scales.empty() ? 1 : static_cast<double>(rows.scales[first / rows.group]);
      double of_group = 0;
      for (; first < end; ++first) of_group += rows.a[first] * rows.b[first];
      sum += of_group * scale;
    }
    return static_cast<float>(sum);
  }

  struct Weights {
    std::vector<double> of_key;
    double sum = 0, largest = -infinity;
  };
  Weights weights(std::span<const float> scores, DType) const {
    Weights w;
    for (const float score : scores)
      if (!(score < min_score)) w.largest = std::fmax(w.largest, static_cast<double>(score));
    for (const float score : scores) {
      w.of_key.push_back(score < min_score ? 0 : std::exp(static_cast<double>(score) - w.largest));
      w.sum += w.of_key.back();
    }
    return w;
  }
  float weighted_sum(const Weights& w, std::span<const float> values, const detail::ValueRounding&) const {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += w.of_key[i] * static_cast<double>(values[i]);
    return w.sum == 0 ? 0 : static_cast<float>(sum / w.sum);
  }
  float log_of_sum(const Weights& w) const { return static_cast<float>(w.largest + std::log(w.sum)); }

  static float column_of(std::span<const float> elements, bool largest) {
    std::size_t column = 0;
    float best = largest ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (largest ? elements[i] > best : elements[i] < best) best = elements[i], column = i;
    return static_cast<float>(column);
  }

  static float rank_of(float x) { return std::isnan(x) ? -std::numeric_limits<float>::infinity() : x; }

  std::vector<float> top(std::span<const float> elements, std::int64_t k) const {
    std::vector<float> columns;
    for (std::size_t i = 0; i < elements.size(); ++i) columns.push_back(static_cast<float>(i));
    const auto key = [&](float column) { return rank_of(elements[static_cast<std::size_t>(column)]); };
    std::ranges::stable_sort(columns, std::ranges::greater(), key);
    columns.resize(static_cast<std::size_t>(k));
    return columns;
  }
  std::vector<float> running_sums(std::span<const float> elements) const {
    std::vector<float> sums;
    double sum = 0;
    for (const float x : elements) sums.push_back(static_cast<float>(sum += static_cast<double>(x)));
    return sums;
  }
  float picked(std::span<const float> elements, float column) const { return elements[static_cast<std::size_t>(column)]; }

  float reduce(Op op, std::span<const float> elements) const {
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
    case Op::row_sum: return static_cast<float>(sum);
    case Op::row_mean: return static_cast<float>(sum / static_cast<double>(elements.size()));
    case Op::row_max: return static_cast<float>(largest);
    case Op::row_min: return static_cast<float>(smallest);
    case Op::row_absmax: return static_cast<float>(magnitude);
    case Op::row_absmax_nan: return nan ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(magnitude);
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
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, grid.values[static_cast<std::size_t>(i)], false);
    outputs.emplace(output.name, std::move(tensor));
  }
  return outputs;
}

} // namespace kiln
