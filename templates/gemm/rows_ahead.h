// RowsAhead: rows of A on their way into an XCD's L2 before the steps ask for them.
#pragma once
#include "common/loops.h"
#include "common/platform.h"
#include "gemm/segment.h"
#include "gemm_config.h"

namespace kiln {

// Workgroups go along k side by side, so that all of an XCD ask for a line of A while it is still on its way from memory, and each keeps a
// place in its L1 for it as long. So each of them first asks for its share of the lines, one a lane, and the steps find them in L2.
template <GemmConfig config> class RowsAhead {
  static constexpr u32 of_xcd = config.workgroups / xcds; // workgroups, where they are fewest
  static constexpr int loads = config.rows_ahead_loads(xcds);

public:
  struct Words {
    u32 of[loads];
  };
  // Divides the rows that there are, which lie behind each other, among the workgroups; those that have none left ask for the last line
  // again, as a branch around it takes longer. The words are to be kept until the first steps are, so that the loads are not dropped.
  static KILN_MEMBER Words load(const void* a, u32 rows, u32 block) {
    Words words;
    const u32 lines = (rows * config.a_row_bytes() + line_bytes - 1) / line_bytes, share = (lines + of_xcd - 1) / of_xcd;
    for_each<loads>([&](int i) KILN_LAMBDA {
      const u32 mine = i * config.threads() + platform::thread_id(), at = smaller(block / xcds * share + mine, lines - 1);
      words.of[i] = 0;
      if (mine < share) words.of[i] = *reinterpret_cast<const u32*>(static_cast<const char*>(a) + at * line_bytes);
    });
    return words;
  }
};

struct NoRowsAhead {
  struct Words {};
  static KILN_MEMBER Words load(const void*, u32, u32) { return {}; }
};

} // namespace kiln
