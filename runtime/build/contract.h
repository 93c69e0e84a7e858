// The ISA contract of a generated kernel: the promises of its schedule, as check_isa takes them.
#pragma once
#include "gen/families/schedule.h"
#include "isa_checks/verdict/expectations.h"

namespace kiln {

// What the schedule's family promises (gen/families/common/promises.h), and for every kernel no scratch and no spills.
isa::Expectations contract(const Plan& plan, const Schedule& schedule, const Target& target);

} // namespace kiln
