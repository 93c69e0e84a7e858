// Registers of a wave under one numbering, and which of them an instruction reads and writes.
#pragma once
#include "isa_checks/target/target_table.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace kiln::isa {

// The first number of each file, and the scalar registers that have names.
namespace reg {
inline constexpr std::uint16_t vgpr = 0, agpr = max_arch_vgprs, sgpr = max_vgprs;
inline constexpr std::uint16_t vcc = sgpr + 106, m0 = sgpr + 124, exec = sgpr + 126, scc = sgpr + 128;
inline constexpr std::uint16_t flat_scratch = sgpr + 102, count = sgpr + 129;
} // namespace reg

struct RegisterRange {
  std::uint16_t first = 0;
  std::uint16_t count = 0;
  bool vector() const { return first < reg::sgpr; } // architectural or accumulation
  bool overlaps(RegisterRange other) const { return first < other.first + other.count && other.first < first + count; }
  bool operator==(const RegisterRange&) const = default;
};
std::string name_of(RegisterRange range); // "v3", "a[0:3]", "s[4:5]", "vcc"

struct RegisterUse {
  std::array<RegisterRange, 3> write_list;
  std::array<RegisterRange, 8> read_list;
  std::uint8_t write_count = 0, read_count = 0;
  std::span<const RegisterRange> writes() const { return {write_list.data(), write_count}; }
  std::span<const RegisterRange> reads() const { return {read_list.data(), read_count}; }
  // Ranges of no registers, and beyond what the lists hold, are left out.
  void read(RegisterRange range) { add(read_list, read_count, range); }
  void write(RegisterRange range) { add(write_list, write_count, range); }
  bool reads_any(RegisterRange range) const { return any(reads(), range); }
  bool writes_any(RegisterRange range) const { return any(writes(), range); }

private:
  static void add(std::span<RegisterRange> list, std::uint8_t& count, RegisterRange range) {
    if (range.count > 0 && count < list.size()) list[count++] = range;
  }
  static bool any(std::span<const RegisterRange> list, RegisterRange range) {
    return std::any_of(list.begin(), list.end(), [range](RegisterRange r) { return r.overlaps(range); });
  }
};

} // namespace kiln::isa
