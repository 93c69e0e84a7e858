// Registry: every family of families.def, with its header, as a list of types.
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

} // namespace kiln
