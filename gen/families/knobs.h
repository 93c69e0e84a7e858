// Knobs: names that users of Triton set, in the terms of a schedule. docs/tuning.md lists them.
#pragma once
#include "gen/families/schedule.h"
#include <string>
#include <vector>

namespace kiln {

// `settings` with the fields of the schedule in the place of knobs: {"num_warps=8"} of a product gives {"waves=8"}. Other settings stay.
// Throws UserError with the reason when a knob means nothing for the schedule's family.
std::vector<std::string> without_knobs(const Schedule& schedule, const std::vector<std::string>& settings);

} // namespace kiln
