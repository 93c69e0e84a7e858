// Chips by name.
#include "isa_checks/timing/chips.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace kiln::timing {

std::string chip_names() {
  std::vector<std::string_view> names;
  for (const Chip& c : machine::chips) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Chip& chip(std::string_view name) {
  const auto* const found = std::ranges::find(machine::chips, name, &Chip::name);
  if (found == machine::chips.end())
    throw isa::Error(fmt::format("chip \"{}\"", name), "there is no such chip", "use one of " + chip_names());
  return *found;
}

} // namespace kiln::timing
