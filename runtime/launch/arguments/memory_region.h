// MemoryRegion: the device memory of one argument, and which of them overlap.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace kiln {

// `rows` pieces of `row` bytes, `pitch` bytes apart.
struct MemoryRegion {
  std::string name;
  std::uint64_t address = 0, row = 0, rows = 1, pitch = 0;
  bool written = false;
  std::uint64_t end() const { return address + (rows - 1) * pitch + row; }
};

// Rows of equal pitch lie side by side when their columns do (halves of one wide buffer). Regions of unequal pitch overlap when
// their whole ranges do.
bool overlap(const MemoryRegion& a, const MemoryRegion& b);

// Two regions that overlap and of which one is written; both null when there are none. `written` is the one that is.
struct Overlap {
  const MemoryRegion *written = nullptr, *other = nullptr;
};
Overlap find_overlap(std::span<const MemoryRegion> regions);

} // namespace kiln
