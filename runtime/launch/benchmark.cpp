// benchmark: sets of buffers, samples, statistics.
#include "runtime/launch/benchmark.h"
#include "gen/error.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/op.h"
#include "machine/chip.h"
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <unordered_set>

namespace kiln {
namespace {

constexpr int least_warm_up = 3, least_samples = 10, most_launches = 1000;
constexpr std::int64_t most_sets = 16384;
constexpr double suspicious_deviation = 0.1; // of the mean

std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

std::int64_t elements(const Shape& shape, const std::map<std::string, std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const Dim& dim : shape) count *= dim.is_dynamic() ? sizes.at(dim.name()) : dim.size();
  return count;
}

std::int64_t flops_of(const Expr& e, const std::map<std::string, std::int64_t>& sizes) {
  using enum OpKind;
  switch (info(e.op()).kind) {
  case pointwise:
  case compare:
  case logic:
  case select:
  case scaled: return elements(e.shape(), sizes);
  case row_reduce:
  case rank:
  case scan:
  case group_reduce: return elements(e.operands().front().shape(), sizes);
  case attention: return (e.op() == Op::attention ? 2 * e.shape().back().size() : 1) * elements(e.operands().front().shape(), sizes);
  case experts: {
    const Expr &of_all = e.operands()[0], &order = e.operands()[1];
    return 2 * elements(order.shape(), sizes) * of_all.shape().back().size() * of_all.operands()[0].shape().back().size();
  }
  case scores:
  case product: {
    if (e.operands()[1].shape().size() == 3) return 0; // counted where experts are chosen
    const Dim& k = e.operands().front().shape().back();
    return 2 * elements(e.shape(), sizes) * (k.is_dynamic() ? sizes.at(k.name()) : k.size());
  }
  case leaf:
  case cast:
  case ungroup:
  case columns:
  case transpose:
  case position:
  case view:
  case pick:
  case sort:
  case scatter: return 0;
  }
  throw InternalError("unknown OpKind");
}

void add_flops(const Expr& e, const std::map<std::string, std::int64_t>& sizes, std::unordered_set<const Node*>& seen, std::int64_t& sum) {
  if (!seen.insert(&e.node()).second) return;
  sum += flops_of(e, sizes);
  for (const Expr& operand : e.operands()) add_flops(operand, sizes, seen, sum);
}

// One tensor within a set of buffers.
struct Placement {
  std::string name;
  DeviceTensor tensor;         // its data is filled in for each set
  std::int64_t offset = 0;     // within a set
  std::vector<std::byte> data; // empty for outputs
};

class Sets {
public:
  Sets(const Device& device, const Kernel& kernel, const KernelSpec& spec, const Inputs& inputs, const BenchmarkOptions& options)
      : device_(device), loaded_(device.load(kernel)), inputs_(inputs) {
    for (const Expr& e : spec.inputs()) place(e->name, inputs.tensors.at(e->name).shape(), e.dtype(), &inputs.tensors.at(e->name));
    for (const Output& o : spec.outputs())
      if (o.in_place_of.empty()) place(o.name, shape(o.value.shape(), dim_sizes(spec, inputs)), o.dtype, nullptr);
    count_ = std::clamp<std::int64_t>((2 * options.cache_bytes + bytes_ - 1) / std::max<std::int64_t>(bytes_, 1) + 1, 2, most_sets);
    memory_.emplace(device.allocate(static_cast<std::size_t>(count_ * bytes_), "benchmark"));
    if (kernel.workspace_bytes() > 0) workspace_.emplace(device.allocate(static_cast<std::size_t>(kernel.workspace_bytes()), "workspace"));
    if (workspace_) device.zero(workspace_->data(), workspace_->bytes());
    for (std::int64_t i = 0; i < count_; ++i) bind(i);
  }

  void launch() {
    bound_[next_].launch();
    next_ = (next_ + 1) % bound_.size();
  }
  std::int64_t count() const { return count_; }
  std::int64_t bytes() const { return count_ * bytes_; }

private:
  static std::vector<std::int64_t> shape(const Shape& dims, const std::map<std::string, std::int64_t>& sizes) {
    std::vector<std::int64_t> result;
    for (const Dim& dim : dims) result.push_back(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size());
    return result;
  }

  void place(const std::string& name, std::vector<std::int64_t> shape, DType dtype, const Tensor* input) {
    Placement p{.name = name, .tensor = {.dtype = dtype, .shape = std::move(shape)}, .offset = bytes_, .data = {}};
    for (const KernelArgument& a : loaded_.kernel().arguments())
      if (a.kind == ArgumentKind::stride && a.tensor == name)
        p.tensor.row_stride = (p.tensor.row() + a.alignment - 1) / a.alignment * a.alignment;
    if (input != nullptr) p.data = packed(*input, p.tensor);
    bytes_ += rounded(p.tensor.bytes());
    placements_.push_back(std::move(p));
  }

  // The elements of `tensor` as they lie in memory with the strides of `as`.
  static std::vector<std::byte> packed(const Tensor& tensor, const DeviceTensor& as) {
    std::vector<std::byte> data(static_cast<std::size_t>(as.bytes()));
    if (as.stride() == as.row() && tensor.data().size() == data.size()) return tensor.data();
    const std::int64_t rows = as.row() > 0 ? tensor.size() / as.row() : 0;
    for (std::int64_t r = 0; r < rows; ++r) std::ranges::copy(tensor.row(r), data.begin() + storage_bytes(as.dtype, r * as.stride()));
    return data;
  }

  void bind(std::int64_t set) {
    std::vector<Argument> arguments;
    for (const Placement& p : placements_) {
      DeviceTensor tensor = p.tensor;
      tensor.data = static_cast<std::byte*>(memory_->data()) + set * bytes_ + p.offset;
      if (!p.data.empty()) device_.copy_to_device(tensor.data, p.data);
      arguments.emplace_back(p.name, tensor);
    }
    for (const auto& [name, value] : inputs_.scalars) arguments.emplace_back(name, value);
    for (const KernelArgument& a : loaded_.kernel().arguments())
      if (a.kind == ArgumentKind::workspace)
        arguments.emplace_back(a.name, workspace_->tensor(u8, {static_cast<std::int64_t>(workspace_->bytes())}));
    bound_.push_back(loaded_.bind(arguments));
  }

  const Device& device_;
  LoadedKernel loaded_;
  const Inputs& inputs_;
  std::vector<Placement> placements_;
  std::int64_t bytes_ = 0, count_ = 0; // bytes of one set
  std::optional<DeviceMemory> memory_, workspace_;
  std::vector<BoundKernel> bound_;
  std::size_t next_ = 0;
};

// Microseconds of one launch, as the mean of `launches`.
double sample(Sets& sets, DeviceClock& clock, int launches) {
  clock.start(nullptr);
  for (int i = 0; i < launches; ++i) sets.launch();
  clock.stop(nullptr);
  return clock.milliseconds() * 1000 / launches;
}

void measure(BenchmarkResult& result, Sets& sets, DeviceClock& clock, const BenchmarkOptions& options) {
  for (int i = 0; i < options.warm_up; ++i) {
    const double us = sample(sets, clock, result.launches_per_sample);
    if (us > 0) result.launches_per_sample = std::clamp(static_cast<int>(std::ceil(options.sample_ms * 1000 / us)), 1, most_launches);
  }
  for (int i = 0; i < options.samples; ++i) result.samples.push_back(sample(sets, clock, result.launches_per_sample));
}

void summarise(BenchmarkResult& result) {
  std::vector<double> sorted = result.samples;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  result.least = sorted.front();
  result.median = n % 2 != 0 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  result.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(n);
  double squares = 0;
  for (const double us : sorted) squares += (us - result.mean) * (us - result.mean);
  result.deviation = std::sqrt(squares / static_cast<double>(n - 1));
  if (result.median > 0) {
    result.gb_per_s = static_cast<double>(result.bytes) / result.median / 1e3;
    result.tflop_per_s = static_cast<double>(result.flops) / result.median / 1e6;
  }
  if (result.deviation > suspicious_deviation * result.mean)
    result.warnings.push_back(
        fmt::format("the deviation is {:.0f} % of the mean: something else runs, or the clocks change; kiln doctor says how to fix them",
                    100 * result.deviation / result.mean));
}

void check(const Device& device, const BenchmarkOptions& options) {
  if (device.is_emulated()) static_cast<void>(device.backend().clock()); // throws
  if (options.warm_up < least_warm_up || options.samples < least_samples)
    throw UserError("benchmark", fmt::format("{} + {} samples are asked for", options.warm_up, options.samples),
                    fmt::format("take at least {} + {}: first launches measure loading and clocks", least_warm_up, least_samples));
}

} // namespace

Work work_of(const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes) {
  Work work;
  for (const Expr& e : spec.inputs()) work.bytes += storage_bytes(e.dtype(), elements(e.shape(), sizes));
  std::unordered_set<const Node*> seen;
  for (const Output& o : spec.outputs()) {
    work.bytes += storage_bytes(o.dtype, elements(o.value.shape(), sizes));
    add_flops(o.value, sizes, seen, work.flops);
  }
  return work;
}

std::optional<double> peak_gb_per_s(std::string_view product) {
  const auto is_same = [](char of_product, char of_chip) { return std::tolower(static_cast<unsigned char>(of_product)) == of_chip; };
  for (const machine::Chip& chip : machine::chips)
    if (!std::ranges::search(product, chip.name, is_same).empty()) return chip.peak_tbs * 1e3;
  return {};
}

BenchmarkResult benchmark(const Device& device, const Kernel& kernel, std::int64_t size, const BenchmarkOptions& options) {
  check(device, options);
  const KernelSpec spec = parse_spec(kernel.spec_text());
  const Inputs inputs = random_inputs(spec, options.seed, {.dynamic_size = size});
  const Work work = work_of(spec, dim_sizes(spec, inputs));
  if (work.bytes == 0) throw UserError("benchmark", "with these sizes there is nothing to launch", "give sizes of at least 1");
  BenchmarkResult result;
  result.bytes = work.bytes, result.flops = work.flops;
  result.peak_gb_per_s = peak_gb_per_s(device.product());
  Sets sets(device, kernel, spec, inputs, options);
  result.buffer_sets = sets.count();
  const std::unique_ptr<DeviceClock> clock = device.backend().clock();
  measure(result, sets, *clock, options);
  summarise(result);
  if (sets.bytes() < 2 * options.cache_bytes)
    result.warnings.push_back(
        fmt::format("a launch has {} bytes, and {} sets of buffers do not fill twice the last-level cache: the data comes from caches",
                    work.bytes, sets.count()));
  return result;
}

} // namespace kiln
