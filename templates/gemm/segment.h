// GemmSegment: consecutive steps of one tile, what a workgroup works on between two epilogues.
#pragma once
#include "common/platform.h"

namespace kiln {

struct GemmSegment {
  u32 tile, first, count;
};

// Rows of A that lie in order, of which `count` exist: the others read the last one.
struct RowsInOrder {
  u32 count;
  KILN_MEMBER u32 operator()(u32 row) const { return row < count ? row : count - 1; }
};

// Workgroups go to the XCDs in turn. The number of `block`, of so many, when those of an XCD are neighbours, so that its L2 shares their A.
KILN_DEVICE u32 workgroup_in_order(u32 block, u32 workgroups) {
  const u32 each = workgroups / xcds, extra = workgroups % xcds;
  const u32 xcd = block % xcds, nth = block / xcds;
  return xcd * each + smaller(xcd, extra) + nth;
}

} // namespace kiln
