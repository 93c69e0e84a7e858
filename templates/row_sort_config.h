// RowSortConfig: rows in the order of their elements. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

struct RowSortConfig {
  int cols = 0;       // elements of a row
  int ranks = 0;      // how many of them are stored, the largest first
  int waves = 16;     // of the workgroup that has the row
  bool in_lds = true; // where the row lies while it is sorted: in LDS, or in the workspace

  static constexpr int bins = 256; // a digit of 8 bits at a time
  constexpr int threads() const { return waves * wave_size; }
  // Consecutive columns that a wave has: whole loads of all its lanes.
  constexpr int wave_cols() const { return ceil_div(ceil_div(cols, wave_size), waves) * wave_size; }
  // Bytes of two lists of a row's keys and columns, of which each digit's sort reads one and writes the other.
  constexpr long long list_bytes() const { return 2ll * 8 * cols; }
  constexpr long long workspace_bytes() const { return in_lds ? 0 : list_bytes(); }
  constexpr long long lds_bytes() const { return (in_lds ? list_bytes() : 0) + 4ll * bins * (waves + 1); }
  bool operator==(const RowSortConfig&) const = default;
};

constexpr const char* why_invalid(const RowSortConfig& c) {
  if (c.cols < 1 || c.cols > 1 << 24) return "cols must be from 1 to 16777216";
  if (c.ranks < 1 || c.ranks > c.cols) return "ranks must be from 1 to cols";
  if (c.waves != 1 && c.waves != 2 && c.waves != 4 && c.waves != 8 && c.waves != 16) return "waves must be 1, 2, 4, 8 or 16";
  return nullptr;
}

} // namespace kiln
