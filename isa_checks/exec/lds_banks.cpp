// Service groups and banks: which lanes are served together, and how many passes their dwords need.
#include "isa_checks/exec/lds_banks.h"
#include "isa_checks/exec/measurements.h"
#include <algorithm>
#include <array>
#include <bit>

namespace kiln::exec {
namespace {

using u64 = std::uint64_t;

constexpr u64 span(int first, int count) { return ((count == 64 ? 0ULL : 1ULL << count) - 1) << first; }

// HARDWARE.md section 3: sets from AMD's CK documentation (gfx942) and HipKittens' measurements (gfx950); widths that
// nobody has published follow the 32-lane or 16-lane halves of older parts.
std::array<u64, 8> read128_gfx942() {
  std::array<u64, 8> groups{};
  constexpr int first[4] = {0, 4, 8, 12}, second[4] = {20, 16, 28, 24};
  for (int half = 0; half < 2; ++half)
    for (int g = 0; g < 4; ++g)
      groups[static_cast<std::size_t>(4 * half + g)] = span(first[g] + 32 * half, 4) | span(second[g] + 32 * half, 4);
  return groups;
}
std::array<u64, 4> read128_gfx950() {
  std::array<u64, 4> groups{};
  for (int half = 0; half < 2; ++half) {
    const int at = 32 * half;
    groups[static_cast<std::size_t>(2 * half)] = span(at, 4) | span(at + 12, 4) | span(at + 20, 8);
    groups[static_cast<std::size_t>(2 * half + 1)] = span(at + 4, 8) | span(at + 16, 4) | span(at + 28, 4);
  }
  return groups;
}

// Passes that one group needs: the most distinct dwords in any bank; lanes that read the same dword share it.
u64 passes(const LaneAddresses& at, u64 lanes, int bytes, int banks) {
  std::array<u64, 256> dwords;
  std::size_t n = 0;
  for (u64 m = at.mask & lanes; m != 0; m &= m - 1) {
    const u64 address = at.lane[std::countr_zero(m)];
    for (u64 d = address / 4; d <= (address + static_cast<u64>(bytes) - 1) / 4; ++d)
      if (n < dwords.size()) dwords[n++] = d;
  }
  const auto end = dwords.begin() + static_cast<std::ptrdiff_t>(n);
  std::sort(dwords.begin(), end);
  std::array<std::uint8_t, 64> load{};
  u64 most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i != 0 && dwords[i] == dwords[i - 1]) continue;
    auto& count = load[dwords[i] % static_cast<u64>(banks)];
    most = std::max<u64>(most, ++count);
  }
  return most;
}

} // namespace

void count_banks(Wave& wave, const MemoryOp& op, const LaneAddresses& at) {
  if (wave.counters == nullptr) return;
  InstCounters& c = wave.counters[wave.pc];
  c.bytes += static_cast<u64>(std::popcount(at.mask)) * op.bytes;
  const bool wide = wave.lds_banks == 64 && !op.store && op.bytes != 12; // gfx950 reads see 64 banks, except b96
  const int banks = wide ? 64 : 32;
  const auto add = [&](u64 lanes) {
    if ((at.mask & lanes) == 0) return;
    c.lds_cycles += passes(at, lanes, op.bytes, banks);
    ++c.lds_ideal;
  };
  if (!op.store && op.bytes == 16 && wide) {
    for (const u64 lanes : read128_gfx950()) add(lanes);
  } else if (!op.store && op.bytes >= 12) {
    for (const u64 lanes : read128_gfx942()) add(lanes);
  } else {
    const int size = banks * 4 / std::max<int>(op.bytes, 4);
    for (int first = 0; first < lane_count; first += size) add(span(first, size));
  }
}

} // namespace kiln::exec
