// The chips: units, clocks, latencies and rates of each part, from which times are predicted. For the host; docs/timing.md has the source
// of each number. Three were fitted to launches of others: max_missing_bytes, eager_ns, and the clock of MI308X.
#pragma once
#include "machine/arch.h"
#include <algorithm>
#include <array>
#include <string_view>

namespace kiln::machine {

// Caches, of all chips: docs/hardware.md. Four ways of L1 are an assumption.
inline constexpr int l1_bytes = 32 << 10, l1_ways = 4; // a CU's vector cache
inline constexpr int l2_bytes = 4 << 20, l2_ways = 16; // of an XCD
inline constexpr double mall_bytes = 256 << 20;        // of the chip

// Cycles are of the engine clock. A latency is from issue to data with nothing else under way.
struct Chip {
  std::string_view name; // "mi300x"
  std::string_view arch; // "gfx942"
  int cus, xcds;
  double clock_ghz; // that single kernels run at

  // Start and end of a kernel that follows another one in a graph.
  double floor_ns;           // what an empty kernel takes
  double eager_ns;           // that a launch on its own takes longer, by a profiler's clock
  double wave_launch_cycles; // of an XCD's dispatcher, for one wave
  double slot_turnover_ns;   // from the end of a workgroup until another one begins in its place

  // Instructions of one wave.
  double dependent_cycles;    // from a vector instruction until one that reads its result
  double taken_branch_cycles; // until the instruction after it issues
  double scalar_load_cycles;  // from the scalar cache or L2
  double lds_latency_cycles;  // without the passes of the access itself
  double lds_pass_cycles;     // of a bank pass
  double barrier_cycles;      // from the last arrival until the waves go on

  // Vector memory.
  double l1_latency_cycles, l2_latency_cycles, mall_latency_ns, hbm_latency_ns;
  double l1_bytes_per_cycle;                   // of a CU: its path to registers
  double fill_bytes_per_cycle;                 // of a CU: its path from L2
  double max_missing_bytes;                    // of lines that a CU's L1 waits for at a time
  double l2_tbs, mall_tbs, hbm_tbs, write_tbs; // of the chip, 1e12 bytes per second; write: to HBM
  double peak_tbs;                             // of the data sheet
  // Beyond so many bytes in flight a CU (all CUs busy), each further byte adds so many nanoseconds.
  double hbm_free_bytes, hbm_ns_per_byte, mall_free_bytes, mall_ns_per_byte;
  double store_ack_cycles;                  // from issue until L2 says that a store is done
  double release_ns, acquire_ns, atomic_ns; // write-back of L2 for others, invalidation, an atomic at device scope
  double peak_tflops_fp8;                   // of the data sheet, dense
};

inline constexpr Chip mi300x{.name = "mi300x",
                             .arch = gfx942.name,
                             .cus = gfx942.compute_units,
                             .xcds = gfx942.xcds,
                             .clock_ghz = gfx942.clock_mhz / 1e3,
                             .floor_ns = 630,
                             .eager_ns = 1500,
                             .wave_launch_cycles = 1,
                             .slot_turnover_ns = 30,
                             .dependent_cycles = 8,
                             .taken_branch_cycles = 16,
                             .scalar_load_cycles = 200,
                             .lds_latency_cycles = gfx942.lds_latency_clocks,
                             .lds_pass_cycles = 2,
                             .barrier_cycles = 16,
                             .l1_latency_cycles = 116,
                             .l2_latency_cycles = 213,
                             .mall_latency_ns = 218,
                             .hbm_latency_ns = gfx942.memory_latency_ns,
                             .l1_bytes_per_cycle = 64,
                             .fill_bytes_per_cycle = 43,
                             .max_missing_bytes = 24 << 10,
                             .l2_tbs = 27.5,
                             .mall_tbs = 5.9,
                             .hbm_tbs = 4.2,
                             .write_tbs = 4.8,
                             .peak_tbs = gfx942.memory_gbs / 1e3,
                             .hbm_free_bytes = 2600,
                             .hbm_ns_per_byte = 0.0527,
                             .mall_free_bytes = 1870,
                             .mall_ns_per_byte = 0.0375,
                             .store_ack_cycles = 400,
                             .release_ns = 450,
                             .acquire_ns = 10,
                             .atomic_ns = 218,
                             .peak_tflops_fp8 = 2615};

// A part with fewer CUs before the same memory.
constexpr Chip part_of(Chip c, std::string_view name, int cus, int xcds) {
  const double more = static_cast<double>(c.cus) / cus;
  c.name = name;
  c.cus = cus;
  c.xcds = xcds;
  c.l2_tbs /= more;
  // The slopes are per byte in flight of one CU.
  c.hbm_free_bytes *= more;
  c.mall_free_bytes *= more;
  c.hbm_ns_per_byte /= more;
  c.mall_ns_per_byte /= more;
  c.peak_tflops_fp8 /= more;
  return c;
}

constexpr Chip mi308x_of(Chip c) {
  constexpr double slower = 1.2 / 2.1;
  c = part_of(c, "mi308x", 80, 4);
  c.clock_ghz *= slower;
  c.l2_tbs *= slower;
  c.peak_tflops_fp8 *= slower;
  return c;
}

constexpr Chip mi325x_of(Chip c) {
  const double faster = 6.0 / c.peak_tbs;
  c.name = "mi325x";
  c.hbm_tbs *= faster;
  c.write_tbs *= faster;
  c.hbm_free_bytes *= faster;
  c.hbm_ns_per_byte /= faster;
  c.peak_tbs = 6.0;
  return c;
}

constexpr Chip mi355x_of(Chip c) {
  const double rate = 6.9 / c.hbm_tbs, share = static_cast<double>(c.cus) / gfx950.compute_units;
  c.name = "mi355x";
  c.arch = gfx950.name;
  c.l2_tbs *= gfx950.clock_mhz / 1e3 / c.clock_ghz / share;
  c.cus = gfx950.compute_units;
  c.xcds = gfx950.xcds;
  c.clock_ghz = gfx950.clock_mhz / 1e3;
  c.floor_ns = 1060;
  c.hbm_tbs = 6.9;
  c.write_tbs = 6.9;
  c.mall_tbs = 9.7;
  c.hbm_free_bytes *= rate * share * gfx950.memory_latency_ns / c.hbm_latency_ns;
  c.hbm_ns_per_byte /= rate * share;
  c.mall_free_bytes *= rate * share;
  c.mall_ns_per_byte /= rate * share;
  c.hbm_latency_ns = gfx950.memory_latency_ns;
  c.lds_latency_cycles = gfx950.lds_latency_clocks;
  c.peak_tbs = gfx950.memory_gbs / 1e3;
  c.peak_tflops_fp8 = 5030;
  return c;
}

constexpr Chip mi350x_of(Chip c) {
  c.name = "mi350x";
  c.l2_tbs *= 2.2 / c.clock_ghz;
  c.clock_ghz = 2.2;
  c.peak_tflops_fp8 = 4610;
  return c;
}

inline constexpr std::array chips{
    mi300x, mi308x_of(mi300x), mi325x_of(mi300x), mi350x_of(mi355x_of(mi300x)), mi355x_of(mi300x), part_of(mi300x, "mi300a", 228, 6)};

// The chip that schedules are made for: of those with the most CUs of the architecture the first one with its clock; null when no chip of
// it is known.
constexpr const Chip* largest_chip(const Arch& arch) {
  for (const Chip& chip : chips)
    if (chip.arch == arch.name && chip.cus == arch.compute_units && chip.clock_ghz * 1e3 == arch.clock_mhz) return &chip;
  return nullptr;
}

} // namespace kiln::machine
