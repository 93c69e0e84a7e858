// make_plan: from a spec to the plan of the family that computes it, one of families.def.
#pragma once
#include <span>
#include <variant>

// Once outside of all namespaces, for the headers.
#define KILN_FAMILY(name)
#include "gen/families/families.def"
#undef KILN_FAMILY

namespace kiln {

// `None` stands before the first comma of the list below.
template <typename None, typename... Families> struct FamilyList {
  using Config = std::variant<typename Families::Config...>;
};

// clang-format off
using RegisteredFamilies = FamilyList<void
#define KILN_FAMILY(name) , name
#include "gen/families/families.def"
#undef KILN_FAMILY
>;
// clang-format on

std::span<const Family> registered_families();

// Validates, merges equal subexpressions, finds the iteration space, and tries the families in order. Throws UserError for what
// no family can compute, and for fp8 types that are not the target's own.
Plan make_plan(const KernelSpec& spec, const Target& target, std::span<const Family> families = registered_families());

std::string to_text(const Plan& plan);

} // namespace kiln
