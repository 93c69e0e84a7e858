// DeviceChip: by variable, by name, by architecture.
#include "runtime/launch/device_chip.h"
#include "gen/error.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace kiln {

DeviceChip chip_of(const Target& target, std::string_view product, std::string_view named) {
  if (!named.empty()) {
    const timing::Chip& chip = timing::chip(named);
    if (chip.arch != target.arch())
      throw UserError(fmt::format("KILN_CHIP={}", named), fmt::format("it is {}, the device is {}", chip.arch, target.arch()),
                      "name the part that the device is");
    return {&chip, "by KILN_CHIP"};
  }
  for (const timing::Chip& chip : machine::chips) {
    std::string name(chip.name);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (chip.arch == target.arch() && product.find(name) != product.npos) return {&chip, "by its name"};
  }
  return {&target.chip(), fmt::format("assumed for {}: \"{}\" names no part, KILN_CHIP does", target.arch(), product)};
}

} // namespace kiln
