// Promises: what the machine code of a kernel looks like. gen/ makes them of schedules, isa_checks/verdict compares code with them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// On the bytes that one lane moves with one instruction (16 is a 128-bit access). Zero fields ask for nothing.
struct Widths {
  int min_bytes = 0;            // every instruction moves at least this much,
  std::uint32_t exceptions = 0; // but for so many
  std::uint32_t at_least = 0;   // and at least so many move min_bytes or more
  std::string excepted = {};    // what the exceptions move, for reports: "scales"
  bool operator==(const Widths&) const = default;
};

// Only what is set is checked.
struct Promises {
#define KILN_PROMISE(type, name, together) type name = {};
#include "machine/promises.def"
  bool operator==(const Promises&) const = default;
};

} // namespace kiln
