// MemoryRegion: overlaps.
#include "runtime/launch/arguments/memory_region.h"

namespace kiln {

bool overlap(const MemoryRegion& a, const MemoryRegion& b) {
  if (a.end() <= b.address || b.end() <= a.address) return false;
  if (a.pitch != b.pitch || a.rows < 2 || b.rows < 2) return true;
  const std::uint64_t column = (b.address >= a.address ? b.address - a.address : a.pitch - (a.address - b.address) % a.pitch) % a.pitch;
  return column < a.row || column + b.row > a.pitch;
}

Overlap find_overlap(std::span<const MemoryRegion> regions) {
  for (std::size_t i = 0; i < regions.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const MemoryRegion &a = regions[j], &b = regions[i];
      if ((!a.written && !b.written) || !overlap(a, b)) continue; // inputs may share memory
      return b.written ? Overlap{&b, &a} : Overlap{&a, &b};
    }
  return {};
}

} // namespace kiln
