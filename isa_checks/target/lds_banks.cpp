// Service groups and banks: which lanes are served together, and how many passes their dwords need.
#include "isa_checks/target/lds_banks.h"
#include "isa_checks/target/target_table.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace kiln::isa {
namespace {

using u64 = std::uint64_t;

constexpr u64 span(int first, int count) { return ((count == 64 ? 0ULL : 1ULL << count) - 1) << first; }

// docs/hardware.md, "LDS banks": sets from AMD's CK documentation (gfx942) and HipKittens' measurements (gfx950); widths that
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
std::uint32_t group_passes(std::span<const u64, 64> at, u64 lanes, int bytes, int banks) {
  std::array<u64, 256> dwords;
  std::size_t n = 0;
  for (u64 m = lanes; m != 0; m &= m - 1) {
    const u64 address = at[static_cast<std::size_t>(std::countr_zero(m))];
    for (u64 d = address / 4; d <= (address + static_cast<u64>(bytes) - 1) / 4; ++d)
      if (n < dwords.size()) dwords[n++] = d;
  }
  const auto end = dwords.begin() + static_cast<std::ptrdiff_t>(n);
  std::sort(dwords.begin(), end);
  std::array<std::uint8_t, 64> load{};
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i != 0 && dwords[i] == dwords[i - 1]) continue;
    auto& count = load[dwords[i] % static_cast<u64>(banks)];
    most = std::max<std::uint32_t>(most, ++count);
  }
  return most;
}

} // namespace

BankPasses lds_bank_passes(int read_banks, bool store, int bytes, std::span<const u64, 64> at, u64 active) {
  BankPasses result;
  const bool wide = read_banks == 64 && !store && bytes != 12; // gfx950 reads see 64 banks, except b96
  const int banks = wide ? read_banks : lds_write_banks;
  const auto add = [&](u64 lanes) {
    if ((active & lanes) == 0) return;
    const std::uint32_t needed = group_passes(at, active & lanes, bytes, banks);
    result.needed += needed;
    ++result.ideal;
    result.worst = std::max(result.worst, static_cast<int>(needed));
  };
  if (!store && bytes == 16 && wide) {
    for (const u64 lanes : read128_gfx950()) add(lanes);
  } else if (!store && bytes >= 12) {
    for (const u64 lanes : read128_gfx942()) add(lanes);
  } else {
    const int size = banks * 4 / std::max(bytes, 4);
    for (int first = 0; first < wave_size; first += size) add(span(first, size));
  }
  return result;
}

std::string_view lds_bank_source(int read_banks, bool store, int bytes) {
  if (bytes == 16 && (store || read_banks == 32)) return "documented"; // Composable Kernel, lds_bank_conflicts.rst
  const bool measured = read_banks == 64 && (bytes == 8 || (!store && (bytes == 12 || bytes == 16)));
  return measured ? "measured" : "assumed"; // HipKittens, analysis/paper_experiments/phases
}

} // namespace kiln::isa
