// Registry: the entries of all families.
#include "gen/families/registry.h"
#include "gen/families/entry.h"

namespace kiln {
namespace {

template <typename... Families> std::span<const Family> entries(FamilyList<Families...>) {
  static constexpr Family list[] = {family_entry<Families>...};
  return list;
}

} // namespace

std::span<const Family> registered_families() { return entries(RegisteredFamilies()); }

} // namespace kiln
