// RowsAhead: rows of A on their way into an XCD's L2 before the steps ask for them.
#pragma once
#include "common/loops.h"
#include "common/platform.h"
#include "gemm_config.h"

namespace kiln {

// Workgroups go along k side by side, so that all of an XCD ask for a line of A while it is still on its way from memory, and each keeps a
// place in its L1 for it as long. So each of them first asks for its share of the lines, one a lane, and the steps find them in L2.
template <GemmConfig config> class RowsAhead {
  static constexpr int of_row = ceil_div(config.a_row_bytes(), line_bytes);
  static constexpr int share = ceil_div(config.rows * of_row, config.workgroups / xcds); // of a workgroup, of an XCD that has fewest
  static constexpr int loads = config.rows_ahead_loads(xcds);

public:
  struct Words {
    u32 of[loads];
  };
  // The words are to be kept until the first steps are, so that the loads are not dropped.
  static KILN_MEMBER Words load(const void* a, u32 rows, u32 block) {
    Words words;
    const u32 nth = block / xcds;
    for_each<loads>([&](int i) KILN_LAMBDA {
      const u32 mine = i * config.threads() + platform::thread_id(), at = nth * share + mine, row = at / of_row;
      words.of[i] = 0;
      if (mine < share && row < rows) words.of[i] = *reinterpret_cast<const u32*>(static_cast<const char*>(a) + row * config.a_row_bytes() + at % of_row * line_bytes);
    });
    return words;
  }
};

struct NoRowsAhead {
  struct Words {};
  static KILN_MEMBER Words load(const void*, u32, u32) { return {}; }
};

} // namespace kiln
