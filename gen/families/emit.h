// Emission: from a plan and a schedule to HIP text that calls the verbs of templates/.
#pragma once
#include "gen/families/schedule.h"

namespace kiln {

// Validates the schedule first. The text is the same for equal inputs on every machine.
KernelSource emit_source(const Plan& plan, const Schedule& schedule, const Target& target);

} // namespace kiln
