// Little's law: bytes in flight = bandwidth x latency.
#include "isa_checks/analysis/concurrency.h"
#include "machine/chip.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {

std::uint64_t bytes_for_bandwidth(const TargetFacts& target) {
  const machine::Chip* const chip = machine::largest_chip(target);
  if (chip == nullptr) return static_cast<std::uint64_t>(target.memory_gbs) * target.memory_latency_ns / target.compute_units;
  // Latency grows with the bytes in flight b: b = rate * (latency + slope * (b - free)), a CU's share of the rate that streams get.
  const double rate = chip->hbm_tbs * 1e3 / chip->cus, slope = chip->hbm_ns_per_byte; // bytes a ns
  return static_cast<std::uint64_t>(rate * (chip->hbm_latency_ns - slope * chip->hbm_free_bytes) / (1 - rate * slope));
}

std::vector<LoopConcurrency> loop_concurrency(const WaitAnalysis& waits, const Occupancy& occupancy, const TargetFacts& target) {
  std::vector<LoopConcurrency> result;
  const auto waves = static_cast<std::uint64_t>(occupancy.waves_per_cu);
  for (const LoopFlight& flight : waits.loops)
    if (flight.loads > 0)
      result.push_back({flight.loop, flight.min_bytes, flight.max_bytes, flight.min_bytes * waves, flight.max_bytes * waves,
                        bytes_for_bandwidth(target)});
  return result;
}

std::string to_text(const std::vector<LoopConcurrency>& loops, const Program& program) {
  std::string text;
  for (const LoopConcurrency& l : loops)
    text += fmt::format("  {}: {} to {} B in flight a wave, {} to {} B per CU; full bandwidth needs {} B per CU\n",
                        program.loop_name(l.loop), l.min_wave_bytes, l.max_wave_bytes, l.min_cu_bytes, l.max_cu_bytes, l.needed_cu_bytes);
  return text;
}

std::string to_json(const std::vector<LoopConcurrency>& loops) {
  using Json = nlohmann::ordered_json;
  Json json = Json::array();
  for (const LoopConcurrency& l : loops)
    json.push_back({{"loop", l.loop},
                    {"least_wave_bytes", l.min_wave_bytes},
                    {"most_wave_bytes", l.max_wave_bytes},
                    {"least_cu_bytes", l.min_cu_bytes},
                    {"most_cu_bytes", l.max_cu_bytes},
                    {"needed_cu_bytes", l.needed_cu_bytes}});
  return json.dump(2);
}

} // namespace kiln::isa
