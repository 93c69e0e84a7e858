// make_plan: from a spec to the plan of the family that computes it.
#pragma once
#include "gen/families/registry.h"

namespace kiln {

// Validates, merges equal subexpressions, finds the iteration space, and tries the families in order. Throws UserError for what
// no family can compute, and for fp8 types that are not the target's own.
Plan make_plan(const KernelSpec& spec, const Target& target, std::span<const Family> families = registered_families());

std::string to_text(const Plan& plan);

} // namespace kiln
