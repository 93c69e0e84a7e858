// kiln bench: times a kernel on a GPU.
#include "gen/error.h"
#include "runtime/cli/command.h"
#include "runtime/cli/kernel_choice.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/benchmark.h"
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

struct BenchRequest {
  KernelChoice kernel;
  std::int64_t rows = 1024, cache_mb = 256;
  std::string device;
  std::vector<std::string> overrides;
  BenchmarkOptions options;
  bool json = false;
};

// A machine without a GPU is no failure of a kernel: exit code 2, as for a command that cannot be meant.
Device chosen_device(const BenchRequest& request) {
  const std::string name = request.device.empty() ? process_environment().device : request.device;
  try {
    return Device::open(name);
  } catch (const EnvironmentError& error) {
    throw UserError("kiln bench", fmt::format("there is no GPU to measure ({}: {})", name, error.fact), error.remedy);
  }
}

void print_json(const Kernel& kernel, const Device& device, const BenchmarkResult& r) {
  nlohmann::ordered_json json{{"kernel", kernel.name()},
                              {"arch", kernel.arch()},
                              {"device", device.description()},
                              {"median_us", r.median},
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
                              {"warnings", r.warnings}};
  json["peak_share"] = r.peak_gb_per_s ? nlohmann::ordered_json(r.gb_per_s / *r.peak_gb_per_s) : nlohmann::ordered_json();
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Kernel& kernel, const Device& device, const BenchmarkResult& r) {
  fmt::print("{} on {}\n", kernel.name(), device.description());
  fmt::print("median {:.2f} us, mean {:.2f}, deviation {:.2f}, least {:.2f}; {} samples of {} launches, {} sets of buffers in turn\n",
             r.median, r.mean, r.deviation, r.least, r.samples.size(), r.launches_per_sample, r.buffer_sets);
  fmt::print("{:.1f} GB/s", r.gb_per_s);
  if (r.peak_gb_per_s) fmt::print(", {:.1f} % of {:.0f}", 100 * r.gb_per_s / *r.peak_gb_per_s, *r.peak_gb_per_s);
  fmt::print("; {:.3f} TFLOP/s\n", r.tflop_per_s);
}

int run(const BenchRequest& request) {
  const Device device = chosen_device(request);
  BenchmarkOptions options = request.options;
  options.cache_bytes = request.cache_mb << 20;
  Jit jit(device.target());
  const Kernel kernel = jit.compile(chosen_spec(request.kernel, device.target()), request.overrides);
  const BenchmarkResult result = benchmark(device, kernel, request.rows, options);
  request.json ? print_json(kernel, device, result) : print_text(kernel, device, result);
  for (const std::string& warning : result.warnings) fmt::print(stderr, "warning: {}\n", warning);
  return ok;
}

} // namespace

Command make_bench(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "Time a kernel on a GPU: GB/s, share of the peak, TFLOP/s");
  const auto request = std::make_shared<BenchRequest>();
  add_kernel_options(*app, request->kernel);
  app->add_option("--rows", request->rows, "Size of every run-time dimension, clamped to its bounds")->capture_default_str();
  app->add_option("--device", request->device, "hip:ORDINAL (KILN_DEVICE, else hip:0)");
  app->add_option("--set", request->overrides, "Schedule field to replace, NAME=VALUE; may be repeated")->delimiter(',');
  app->add_option("--samples", request->options.samples, "Timed samples, at least 10")->capture_default_str();
  app->add_option("--warm-up", request->options.warm_up, "Warm-up samples, at least 3")->capture_default_str();
  app->add_option("--cache-mb", request->cache_mb, "Last-level cache to exceed by rotating buffers, in MiB")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_flag("--json", request->json, "Print one JSON document");
  return {app, [request] { return run(*request); }};
}

} // namespace kiln::cli
