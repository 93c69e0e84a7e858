// kiln bench: times a kernel on a GPU.
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/benchmark.h"
#include "runtime/launch/device_chip.h"
#include "runtime/proof/checked_run.h"
#include <fmt/format.h>
#include <memory>
#include <optional>

namespace kiln::cli {
namespace {

struct BenchRequest {
  KernelChoice kernel;
  std::int64_t rows = 1024, cache_mb = 256;
  std::string device;
  std::vector<std::string> overrides;
  BenchmarkOptions options;
  bool check = false, json = false;
};

// What --check adds.
struct Check {
  CheckedRun outputs;
  timing::Prediction prediction;
};

// Built again with the settings that the Jit used, since the kernel alone does not say by how much its sums may differ.
Check check(const BenchRequest& request, const Device& device, const Kernel& kernel) {
  const KernelSpec spec = parse_spec(kernel.spec_text());
  const BuiltKernel built = build_kernel(spec, device.target(), own_process_options(process_environment()), kernel.settings());
  const Inputs inputs = random_inputs(spec, request.options.seed, {.dynamic_size = request.rows});
  const DeviceChip part = chip_of(device.target(), device.product(), process_environment().chip);
  return {checked_run(device, built, kernel, spec, inputs), predicted(built, spec, dim_sizes(spec, inputs), *part.chip)};
}

nlohmann::ordered_json json_of(const BenchmarkResult& r) {
  return {{"median_us", r.median},
          {"mean_us", r.mean},
          {"deviation_us", r.deviation},
          {"least_us", r.least},
          {"samples_us", r.samples},
          {"launches_per_sample", r.launches_per_sample},
          {"bytes", r.bytes},
          {"flops", r.flops},
          {"gb_per_s", r.gb_per_s},
          {"tflop_per_s", r.tflop_per_s},
          {"buffer_sets", r.buffer_sets},
          {"warnings", r.warnings},
          {"chip", r.chip->name},
          {"chip_known", r.chip_how},
          {"peak_share", r.gb_per_s / r.peak_gb_per_s()}};
}

void print_json(const Kernel& kernel, const Device& device, const std::optional<BenchmarkResult>& r, const std::optional<Check>& check) {
  nlohmann::ordered_json json{{"kernel", kernel.name()}, {"arch", kernel.arch()}, {"device", device.description()}};
  if (r) json.update(json_of(*r));
  if (check) {
    const timing::Prediction& p = check->prediction;
    json["outputs"] = to_json(check->outputs);
    json["predicted"] = {{"chip", p.chip->name}, {"us", p.microseconds}, {"low_us", p.low}, {"high_us", p.high}};
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const BenchmarkResult& r) {
  fmt::print("median {:.2f} us, mean {:.2f}, deviation {:.2f}, least {:.2f}; {} samples of {} launches, {} sets of buffers in turn\n",
             r.median, r.mean, r.deviation, r.least, r.samples.size(), r.launches_per_sample, r.buffer_sets);
  fmt::print("{:.1f} GB/s, {:.1f} % of {:.0f} ({}, {}); {:.3f} TFLOP/s\n", r.gb_per_s, 100 * r.gb_per_s / r.peak_gb_per_s(),
             r.peak_gb_per_s(), r.chip->name, r.chip_how, r.tflop_per_s);
}

void print_text(const Check& check, const std::optional<BenchmarkResult>& r) {
  const timing::Prediction& p = check.prediction;
  fmt::print("{}", to_text(check.outputs));
  fmt::print("predicted for {}: {:.2f} us ({:.2f} to {:.2f})", p.chip->name, p.microseconds, p.low, p.high);
  if (r) fmt::print("; measured / predicted {:.2f}\n", r->median / p.microseconds);
  else fmt::print("; not measured: the CPU model executes, it does not time\n");
}

int run(const BenchRequest& request) {
  const Device device = open_device("kiln bench", request.device.empty() ? process_environment().device : request.device);
  BenchmarkOptions options = request.options;
  options.cache_bytes = request.cache_mb << 20;
  Jit jit(device.target());
  const Kernel kernel = jit.compile(chosen_spec(request.kernel, device.target()), request.overrides);
  std::optional<BenchmarkResult> result;
  if (!request.check || !device.is_emulated()) result = benchmark(device, kernel, request.rows, options);
  std::optional<Check> checked;
  if (request.check) checked = check(request, device, kernel);
  if (request.json) {
    print_json(kernel, device, result, checked);
  } else {
    fmt::print("{} on {}\n", kernel.name(), device.description());
    if (result) print_text(*result);
    if (checked) print_text(*checked, result);
  }
  if (result)
    for (const std::string& warning : result->warnings) fmt::print(stderr, "warning: {}\n", warning);
  return !checked || checked->outputs.right() ? ok : kernel_failed;
}

} // namespace

Command make_bench(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "Time a kernel on a GPU: GB/s, share of the peak, TFLOP/s");
  const auto request = std::make_shared<BenchRequest>();
  add_kernel_options(*app, request->kernel);
  app->add_option("--rows", request->rows, "Size of every run-time dimension, clamped to its bounds")->capture_default_str();
  app->add_option("--device", request->device,
                  "hip:ORDINAL (KILN_DEVICE, else hip:0); with --check also emulated:ARCH, which is not timed");
  app->add_option("--set", request->overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  app->add_option("--samples", request->options.samples, "Timed samples, at least 10")->capture_default_str();
  app->add_option("--warm-up", request->options.warm_up, "Warm-up samples, at least 3")->capture_default_str();
  app->add_option("--cache-mb", request->cache_mb, "Last-level cache to exceed by rotating buffers, in MiB")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_flag("--check", request->check,
                "Compare a launch's outputs with the reference and the CPU model, and the time with the prediction");
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
