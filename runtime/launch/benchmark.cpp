// benchmark: sets of buffers, samples, statistics.
#include "runtime/launch/benchmark.h"
#include "gen/error.h"
#include "gen/reference/evaluate.h"
#include "gen/reference/random_inputs.h"
#include "gen/spec/op.h"
#include "runtime/launch/device_chip.h"
#include "runtime/launch/kernel_buffers.h"
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <unordered_set>

namespace kiln {
namespace {

constexpr int min_warm_up = 3, min_samples = 10, max_launches = 1000;
constexpr double suspicious_deviation = 0.1; // of the mean

std::int64_t elements(const Shape& shape, const std::map<std::string, std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const Dim& dim : shape) count *= dim.is_dynamic() ? sizes.at(dim.name()) : dim.size();
  return count;
}

std::int64_t flops_of(const Expr& e, const std::map<std::string, std::int64_t>& sizes) {
  using enum OpKind;
  switch (info(e.op()).kind) {
  case pointwise:
  case integer:
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
  case operand:
  case columns:
  case transpose:
  case position:
  case view:
  case pick:
  case sort:
  case stack:
  case scatter: return 0;
  }
  throw InternalError("unknown OpKind");
}

void add_flops(const Expr& e, const std::map<std::string, std::int64_t>& sizes, std::unordered_set<const Node*>& seen, std::int64_t& sum) {
  if (!seen.insert(&e.node()).second) return;
  sum += flops_of(e, sizes);
  for (const Expr& operand : e.operands()) add_flops(operand, sizes, seen, sum);
}

// Microseconds of one launch, as the mean of `launches`.
double sample(KernelBuffers& sets, DeviceClock& clock, int launches) {
  clock.start(nullptr);
  for (int i = 0; i < launches; ++i) sets.launch();
  clock.stop(nullptr);
  return clock.milliseconds() * 1000 / launches;
}

void measure(BenchmarkResult& result, KernelBuffers& sets, DeviceClock& clock, const BenchmarkOptions& options) {
  for (int i = 0; i < options.warm_up; ++i) {
    const double us = sample(sets, clock, result.launches_per_sample);
    if (us > 0) result.launches_per_sample = std::clamp(static_cast<int>(std::ceil(options.sample_ms * 1000 / us)), 1, max_launches);
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
  if (options.warm_up < min_warm_up || options.samples < min_samples)
    throw UserError("benchmark", fmt::format("{} + {} samples are asked for", options.warm_up, options.samples),
                    fmt::format("take at least {} + {}: first launches measure loading and clocks", min_warm_up, min_samples));
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

BenchmarkResult benchmark(const Device& device, const Kernel& kernel, std::int64_t size, const BenchmarkOptions& options) {
  check(device, options);
  const KernelSpec spec = parse_spec(kernel.spec_text());
  const Inputs inputs = random_inputs(spec, options.seed, {.dynamic_size = size});
  const Work work = work_of(spec, dim_sizes(spec, inputs));
  if (work.bytes == 0) throw UserError("benchmark", "with these sizes there is nothing to launch", "give sizes of at least 1");
  BenchmarkResult result;
  result.bytes = work.bytes, result.flops = work.flops;
  const DeviceChip part = chip_of(device.target(), device.product(), process_environment().chip);
  result.chip = part.chip;
  result.chip_how = part.how;
  KernelBuffers sets(device, kernel, spec, inputs, 2 * options.cache_bytes, 2);
  result.buffer_sets = sets.sets();
  const std::unique_ptr<DeviceClock> clock = device.backend().clock();
  if (options.before_launch) options.before_launch();
  measure(result, sets, *clock, options);
  summarise(result);
  if (sets.bytes() < 2 * options.cache_bytes)
    result.warnings.push_back(
        fmt::format("a launch has {} bytes, and {} sets of buffers do not fill twice the last-level cache: the data comes from caches",
                    work.bytes, sets.sets()));
  return result;
}

} // namespace kiln
