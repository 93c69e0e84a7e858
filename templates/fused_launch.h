// What kernels of several problems are made of: rows and flat runs, some workgroups each.
#pragma once
#include "elementwise.h"
#include "rowwise.h"

namespace kiln {

// Whether this wave is beyond those of a problem that computes with `threads`. No barrier waits for waves that have ended.
KILN_DEVICE bool is_surplus(int threads) {
  return platform::uniform(platform::thread_id() / wave_size) >= static_cast<u32>(threads / wave_size);
}

} // namespace kiln
