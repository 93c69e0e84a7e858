// The ISA contract of a generated kernel: what its plan and schedule promise about the code that comes out.
#pragma once
#include "gen/families/schedule.h"
#include "isa_checks/verdict/expectations.h"

namespace kiln {

// No scratch, no spills, LDS as planned, registers for at least four waves a SIMD, all loads of full tensors as wide as the
// schedule's vector, packed fp8 conversion, and none of the slow forms that Kiln's templates avoid: flat addressing,
// cross-lane traffic through LDS, IEEE division where the spec did not ask for it.
isa::Expectations contract(const Plan& plan, const Schedule& schedule, const Target& target);

} // namespace kiln
