// Occupancy: how many waves of a kernel one SIMD can hold, and which resource says so.
#pragma once
#include "isa_checks/target/target_table.h"
#include <string_view>

namespace kiln::isa {

enum class OccupancyLimit {
  wave_slots, // the hardware's 8 waves per SIMD
  vgprs,
  sgprs,
  lds,
};
std::string_view to_string(OccupancyLimit limit); // "wave_slots"

// What a kernel asks for. Registers are per wave (per lane for VGPRs, both kinds together), LDS is per workgroup.
struct OccupancyInput {
  int vgprs = 0;
  int sgprs = 0; // VCC, flat scratch and XNACK mask included, as in the metadata's .sgpr_count
  int lds_bytes = 0;
  int workgroup_size = 256; // lanes
  bool operator==(const OccupancyInput&) const = default;
};

struct Occupancy {
  int workgroups_per_cu = 0; // 0: the kernel cannot be launched at all
  int waves_per_cu = 0;
  double waves_per_simd = 0; // waves_per_cu / SIMDs: fractional when a workgroup's waves do not divide by 4
  OccupancyLimit limit = OccupancyLimit::wave_slots;
  int allocated_vgprs = 0, allocated_lds_bytes = 0; // rounded to the granules
  int vgpr_waves = 0, sgpr_waves = 0;               // waves per SIMD that each alone would allow, at most 8
  int lds_workgroups = 0;                           // workgroups per CU that LDS alone would allow
  int next_vgprs = 0;                               // the largest count of VGPRs that allows more waves per SIMD; 0 when VGPRs do not limit
  // What LLVM's occupancy remark says of this input, when the kernel is compiled for exactly this workgroup size. It
  // does not round LDS to the granule, nor registers' waves to whole workgroups, and is at least 1: so it may be
  // higher.
  int compiler_waves_per_simd = 0;
  bool operator==(const Occupancy&) const = default;
};

// The 32 workgroup slots and 16 barriers of a CU never bind before its 32 wave slots do, and are left out.
Occupancy occupancy(const TargetFacts& target, const OccupancyInput& input);

} // namespace kiln::isa
