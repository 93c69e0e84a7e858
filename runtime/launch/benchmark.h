// benchmark: the time of a kernel on a GPU, by the device's own clock, with data that lies in memory and not in a cache.
#pragma once
#include "isa_checks/timing/chips.h"
#include "runtime/launch/device.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln {

struct BenchmarkOptions {
  int warm_up = 3;                        // samples that are not counted; at least 3
  int samples = 10;                       // that are; at least 10
  double sample_ms = 0.2;                 // a sample repeats the launch until it lasts about this long, for the clock's sake
  std::int64_t cache_bytes = 256ll << 20; // of the last-level cache (256 MiB on MI300 and MI350 parts)
  std::uint64_t seed = 1;                 // of the inputs
  std::function<void()> before_launch{};  // called once all data are on the device
};

// Times are microseconds of one launch.
struct BenchmarkResult {
  std::vector<double> samples; // in the order they were taken; the first launches are not among them
  double mean = 0, median = 0, deviation = 0, least = 0;
  int launches_per_sample = 1;
  std::int64_t bytes = 0, flops = 0;    // of one launch, as work_of counts them
  std::int64_t buffer_sets = 1;         // that launches take in turn
  double gb_per_s = 0, tflop_per_s = 0; // of the median; GB is 10^9 bytes
  const timing::Chip* chip = nullptr;   // the part that it ran on, and how that is known (DeviceChip)
  std::string chip_how;
  double peak_gb_per_s() const { return chip->peak_tbs * 1e3; } // of the part's memory, by its data sheet
  std::vector<std::string> warnings;                            // a deviation over 10 % of the mean; data that stays in the cache
};

// Compulsory traffic and arithmetic of one launch: every input read once and every output written once, whatever the kernel does;
// one operation for each pointwise function and each reduced element, two for each product of a matrix product.
struct Work {
  std::int64_t bytes = 0, flops = 0;
};
Work work_of(const KernelSpec& spec, const std::map<std::string, std::int64_t>& sizes);

// Random inputs with `size` for every run-time dimension (moved into its bounds). Launches take sets of buffers in turn that
// together have twice the bytes of the last-level cache. Throws UserError on an emulated device, when fewer than 3 + 10 samples
// are asked for, and when there is nothing to launch.
BenchmarkResult benchmark(const Device& device, const Kernel& kernel, std::int64_t size, const BenchmarkOptions& options = {});

} // namespace kiln
