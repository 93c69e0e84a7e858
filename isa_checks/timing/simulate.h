// simulate: plays a record on a chip, event by event: the slowest XCD, with its share of MALL and HBM.
#pragma once
#include "isa_checks/timing/chips.h"
#include "isa_checks/timing/memory_levels.h"
#include "isa_checks/timing/record.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kiln::timing {

// What a wave does, or waits for.
enum class WaveActivity : std::uint8_t { issue, load, scalar_load, lds, store, barrier, flag };
inline constexpr std::size_t doing_count = 7;
std::string_view to_string(WaveActivity doing); // "issues", "waits for loads"

struct Span { // of a wave's time, in cycles
  std::uint32_t workgroup;
  int wave;
  WaveActivity doing;
  double from, to;
};

struct Simulation {
  double cycles = 0;                             // from the first workgroup's launch until all is done and written
  double first_data = 0;                         // when the first load of all has its data
  double last_data = 0;                          // when the last load of all had its data
  double nanoseconds = 0;                        // of the kernel, the floor included
  int xcds = 0;                                  // that work
  std::uint32_t xcd = 0;                         // the simulated one
  int cus = 0;                                   // of the simulated XCD that work
  std::uint32_t workgroups = 0;                  // of the simulated XCD
  std::array<double, doing_count> wave_cycles{}; // summed over its waves
  double peak_waves = 0;                         // waves on a CU at once, the most
  MemoryLevels::Traffic traffic;                 // of the simulated XCD
  bool from_hbm = false;                         // lines that L2 does not have come from HBM, not from MALL
  BusyTime busy;                                 // of the simulated XCD; of its CUs: the sum
  std::vector<double> far_bytes;                 // that came from MALL and HBM, by BusyTime::slice
  std::vector<Span> spans;                       // of one CU, when asked for
};

struct SimulateOptions {
  CacheState cache = CacheState::cold;
  WhatIf what_if{};
  bool spans = false;                 // keep those of CU 0
  std::optional<std::uint32_t> xcd{}; // the one to simulate; none: the slowest
};

// With the data in MALL or L2: with them farther away, if that takes less. Throws isa::Error when waves wait for each other for ever.
Simulation simulate(const Record& record, const Chip& chip, const SimulateOptions& options);

} // namespace kiln::timing
