// The table of chips. Every number is explained, with its source, in docs/timing.md; nothing here was fitted to a kernel's time.
#include "isa_checks/timing/chips.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace kiln::timing {
namespace {

constexpr Chip mi300x{.name = "mi300x",
                      .arch = "gfx942",
                      .cus = 304,
                      .xcds = 8,
                      .clock_ghz = 2.1,
                      .floor_ns = 630,
                      .wave_launch_cycles = 1,
                      .slot_turnover_ns = 30,
                      .dependent_cycles = 8,
                      .taken_branch_cycles = 16,
                      .scalar_load_cycles = 200,
                      .lds_latency_cycles = 48,
                      .lds_pass_cycles = 2,
                      .barrier_cycles = 16,
                      .l1_latency_cycles = 116,
                      .l2_latency_cycles = 213,
                      .mall_latency_ns = 218,
                      .hbm_latency_ns = 425,
                      .l1_bytes = 32 << 10,
                      .line_bytes = 128,
                      .l2_bytes = 4 << 20,
                      .mall_bytes = 256 << 20,
                      .l1_bytes_per_cycle = 64,
                      .fill_bytes_per_cycle = 43,
                      .l2_tbs = 27.5,
                      .mall_tbs = 5.9,
                      .hbm_tbs = 4.2,
                      .write_tbs = 4.8,
                      .peak_tbs = 5.3,
                      .hbm_free_bytes = 2600,
                      .hbm_ns_per_byte = 0.0527,
                      .mall_free_bytes = 1870,
                      .mall_ns_per_byte = 0.0375,
                      .store_ack_cycles = 400,
                      .release_ns = 450,
                      .acquire_ns = 10,
                      .atomic_ns = 218,
                      .peak_tflops_fp8 = 2615};

constexpr Chip mi308x_of(Chip c) {
  c.name = "mi308x";
  c.cus = 80;
  c.xcds = 4;
  c.l2_tbs *= 80.0 / 304;
  // The slopes are per byte in flight of one CU, of which there are fewer before the same memory.
  c.hbm_free_bytes *= 304.0 / 80;
  c.mall_free_bytes *= 304.0 / 80;
  c.hbm_ns_per_byte *= 80.0 / 304;
  c.mall_ns_per_byte *= 80.0 / 304;
  c.peak_tflops_fp8 *= 80.0 / 304;
  return c;
}

constexpr Chip mi325x_of(Chip c) {
  c.name = "mi325x";
  const double faster = 6.0 / 5.3;
  c.hbm_tbs *= faster;
  c.write_tbs *= faster;
  c.hbm_free_bytes *= faster;
  c.hbm_ns_per_byte /= faster;
  c.peak_tbs = 6.0;
  return c;
}

constexpr Chip mi355x_of(Chip c) {
  c.name = "mi355x";
  c.arch = "gfx950";
  c.cus = 256;
  c.clock_ghz = 2.4;
  c.l2_tbs *= 256.0 / 304 * 2.4 / 2.1;
  c.hbm_latency_ns = 362;
  c.hbm_tbs = 6.9;
  c.write_tbs = 6.9;
  c.mall_tbs = 9.7;
  const double rate = 6.9 / 4.2, share = 304.0 / 256;
  c.hbm_free_bytes *= rate * share * 362 / 425;
  c.hbm_ns_per_byte /= rate * share;
  c.mall_free_bytes *= rate * share;
  c.mall_ns_per_byte /= rate * share;
  c.lds_latency_cycles = 61;
  c.peak_tbs = 8;
  c.peak_tflops_fp8 = 5030;
  return c;
}

constexpr Chip mi350x_of(Chip c) {
  c.name = "mi350x";
  c.l2_tbs *= 2.2 / 2.4;
  c.clock_ghz = 2.2;
  c.peak_tflops_fp8 = 4610;
  return c;
}

constexpr std::array table{mi300x, mi308x_of(mi300x), mi325x_of(mi300x), mi350x_of(mi355x_of(mi300x)), mi355x_of(mi300x)};

} // namespace

std::span<const Chip> chips() { return table; }

std::string chip_names() {
  std::vector<std::string_view> names;
  for (const Chip& c : table) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Chip& chip(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Chip::name);
  if (found == table.end()) throw isa::Error(fmt::format("chip \"{}\"", name), "there is no such chip", "use one of " + chip_names());
  return *found;
}

} // namespace kiln::timing
