// ChipFields: the numbers of a Chip by name, and a file that replaces some of them with measured ones.
#pragma once
#include "isa_checks/timing/chips.h"
#include <span>
#include <string>

namespace kiln::timing {

struct ChipField {
  std::string_view name; // "l2_latency_cycles"
  double Chip::* place;
};
std::span<const ChipField> chip_fields();

// What `kiln calibrate` writes: {"chip": "mi300x", "constants": {"l2_latency_cycles": {"table": 213, "measured": 220}, ...}}. A number in
// place of the object is taken as measured; null is not. The rest is that chip's own. Throws isa::Error: no such chip or constant, a value
// that is not above 0, malformed text.
Chip read_chip(const std::string& text);

} // namespace kiln::timing
