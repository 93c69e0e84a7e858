// ColumnMap: from a column of a kernel to another one.
#pragma once
#include "common/platform.h"

namespace kiln {

// From a column of the row to one in memory: its partner at a distance, then the remainder, then the quotient.
struct ColumnMap {
  int partner = 0; // 0: itself
  int tile = 0;    // 0: no remainder
  int repeat = 1;
  int shift = 0; // with none of these: the column so many places before
  KILN_MEMBER constexpr u32 of(u32 column) const {
    if (partner && is_power_of_two(partner)) column ^= partner;
    else if (partner) column = column % (2u * partner) < static_cast<u32>(partner) ? column + partner : column - partner;
    if (tile) column %= static_cast<u32>(tile);
    return column / repeat;
  }
  // Whether columns `stride` apart are moved alike, and how far they lie apart then.
  constexpr bool is_even(int stride) const {
    return !shift && (!partner || stride % (2 * partner) == 0) && (!tile || stride % tile == 0) && stride % repeat == 0;
  }
  constexpr int step(int stride) const { return tile ? 0 : stride / repeat; }
};

} // namespace kiln
