// Concurrency: the bytes that loops keep in flight, per wave and per CU, beside what Little's law needs for the chip's
// bandwidth.
#pragma once
#include "isa_checks/analysis/occupancy.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/program.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::isa {

struct LoopConcurrency {
  std::size_t loop = 0;
  std::uint32_t min_wave_bytes = 0, max_wave_bytes = 0; // of one wave, over the points of the settled loop
  std::uint64_t min_cu_bytes = 0, max_cu_bytes = 0;     // times the waves of a CU
  std::uint64_t needed_cu_bytes = 0;                    // bandwidth times latency, for each CU (TargetFacts: the latency is assumed)
};

// Loops without loads of device memory are left out.
std::vector<LoopConcurrency> loop_concurrency(const WaitAnalysis& waits, const Occupancy& occupancy, const TargetFacts& target);

// Bytes that each CU must have in flight so that all of them together reach the peak bandwidth.
std::uint64_t bytes_for_bandwidth(const TargetFacts& target);

std::string to_text(const std::vector<LoopConcurrency>& loops, const Program& program);
std::string to_json(const std::vector<LoopConcurrency>& loops);

} // namespace kiln::isa
