// DeviceChip: which part a device is, for what depends on the part and not on the architecture: peaks, predictions.
#pragma once
#include "gen/plan/target.h"
#include "isa_checks/timing/chips.h"
#include <string>
#include <string_view>

namespace kiln {

struct DeviceChip {
  const timing::Chip* chip = nullptr;
  std::string how; // "by its name", "by KILN_CHIP", "assumed for gfx942: ..."
};

// By KILN_CHIP (`named`) if it is set, else by the product's name ("AMD Instinct MI300X"), else the part that schedules of the
// architecture are chosen for: HIP calls some parts "AMD Radeon Graphics". Throws isa::Error for a `named` that is no chip, UserError for
// one of another architecture.
DeviceChip chip_of(const Target& target, std::string_view product, std::string_view named);

} // namespace kiln
