// Chips by name, for messages and command lines; machine/chip.h is the table.
#pragma once
#include "machine/chip.h"
#include <string>
#include <string_view>

namespace kiln::timing {

using machine::Chip;

// Throws isa::Error naming the chips there are.
const Chip& chip(std::string_view name);
std::string chip_names(); // "mi300x, mi308x, ..."

} // namespace kiln::timing
