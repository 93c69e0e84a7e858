// GemmSegment: consecutive steps of one tile, what a workgroup works on between two epilogues.
#pragma once
#include "common/platform.h"

namespace kiln {

struct GemmSegment {
  u32 tile, first, count;
};

KILN_DEVICE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

} // namespace kiln
