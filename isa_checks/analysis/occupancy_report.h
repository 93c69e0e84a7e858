// OccupancyReport: what limits a kernel's waves, the next boundary of each resource, and what is to be had for nothing.
#pragma once
#include "isa_checks/analysis/facts.h"
#include <optional>
#include <string>

namespace kiln::isa {

// Less of one resource, all else the same, gives more waves.
struct OccupancyStep {
  int fewer = 0;             // registers or bytes
  double waves_per_simd = 0; // then
  int workgroups_per_cu = 0;
  bool operator==(const OccupancyStep&) const = default;
};

struct OccupancyReport {
  Occupancy now;
  std::optional<OccupancyStep> vgprs, lds, sgprs; // nothing when less of it alone does not help
  int spare_vgprs = 0;                            // more would not lower the occupancy
  int spare_lds_bytes = 0;                        // likewise, per workgroup
  bool operator==(const OccupancyReport&) const = default;
};

OccupancyReport occupancy_report(const TargetFacts& target, const Resources& resources);
OccupancyInput occupancy_input(const Resources& resources);

std::string to_text(const OccupancyReport& report); // "5 VGPRs fewer give 5 waves instead of 4"
std::string to_json(const OccupancyReport& report);

} // namespace kiln::isa
