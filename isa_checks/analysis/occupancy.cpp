// The occupancy formula.
#include "isa_checks/analysis/occupancy.h"
#include <algorithm>
#include <array>
#include <limits>

namespace kiln::isa {
namespace {

// Damaged files name absurd sizes; far above what any target has, and far below what would overflow.
int sane(int value) { return std::clamp(value, 1, 1 << 28); }
int round_up(int value, int granule) { return (value + granule - 1) / granule * granule; }
int divide_up(int value, int by) { return (value + by - 1) / by; }

int waves_by_vgprs(int vgprs) {
  const int allocated = round_up(sane(vgprs), vgpr_granule);
  return std::min(max_waves_per_simd, max_vgprs / allocated);
}

// LLVM's AMDGPUBaseInfo.cpp, getOccupancyWithNumSGPRs for gfx9 (it allows 10 waves up to 80); beyond 100 it gives 7.
int waves_by_sgprs(int sgprs) { return std::min(max_waves_per_simd, sgprs <= 100 ? 8 : 7); }

// As AMDGPUSubtarget::getOccupancyWithWorkGroupSizes of LLVM 21, for one size, with the registers' limits of IsaInfo.
int waves_by_compiler(const TargetFacts& target, const OccupancyInput& input, int waves) {
  const int slots = simds_per_cu * max_waves_per_simd;
  const int workgroups = std::min(slots / waves, target.lds_bytes / std::max(input.lds_bytes, 1));
  const int by_workgroups = std::clamp(divide_up(workgroups * waves, simds_per_cu), 1, max_waves_per_simd);
  const int by_vgprs = std::max(waves_by_vgprs(input.vgprs), 1);
  return std::min({by_workgroups, by_vgprs, waves_by_sgprs(input.sgprs)});
}

} // namespace

std::string_view to_string(OccupancyLimit limit) {
  static constexpr std::array<std::string_view, 4> names{"wave_slots", "vgprs", "sgprs", "lds"};
  return names[static_cast<std::size_t>(limit)];
}

Occupancy occupancy(const TargetFacts& target, const OccupancyInput& input) {
  Occupancy result;
  const int waves = divide_up(sane(input.workgroup_size), wave_size); // of one workgroup
  result.allocated_vgprs = round_up(sane(input.vgprs), vgpr_granule);
  result.allocated_lds_bytes = input.lds_bytes <= 0 ? 0 : round_up(sane(input.lds_bytes), target.lds_granule_bytes);
  result.vgpr_waves = waves_by_vgprs(input.vgprs);
  result.sgpr_waves = waves_by_sgprs(input.sgprs);

  const auto by_waves = [&](int waves_per_simd) { return simds_per_cu * waves_per_simd / waves; };
  const int slots = by_waves(max_waves_per_simd);
  result.lds_workgroups = result.allocated_lds_bytes == 0 ? std::numeric_limits<int>::max() : target.lds_bytes / result.allocated_lds_bytes;

  // In the order of preference when two limits tie: the one that a kernel's author cannot change comes first.
  const std::array<std::pair<int, OccupancyLimit>, 4> limits{{{slots, OccupancyLimit::wave_slots},
                                                              {by_waves(result.vgpr_waves), OccupancyLimit::vgprs},
                                                              {result.lds_workgroups, OccupancyLimit::lds},
                                                              {by_waves(result.sgpr_waves), OccupancyLimit::sgprs}}};
  const auto smallest = *std::min_element(limits.begin(), limits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  result.workgroups_per_cu = smallest.first;
  result.limit = smallest.second;
  result.waves_per_cu = result.workgroups_per_cu * waves;
  result.waves_per_simd = static_cast<double>(result.waves_per_cu) / simds_per_cu;
  result.compiler_waves_per_simd = waves_by_compiler(target, input, waves);
  if (result.limit == OccupancyLimit::vgprs)
    for (int count = result.allocated_vgprs - vgpr_granule; count > 0 && result.next_vgprs == 0; count -= vgpr_granule)
      if (std::min({by_waves(waves_by_vgprs(count)), slots, result.lds_workgroups, by_waves(result.sgpr_waves)}) > result.workgroups_per_cu)
        result.next_vgprs = count;
  return result;
}

} // namespace kiln::isa
