// HandoverSpace: what the handover from a phase of a launch to the next one keeps in the workspace. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

// In lines of a cache of their own: the number of launches, two counts of parts that are done, for launches in turn; then a flag for each
// place of those who go on.
struct HandoverSpace {
  static constexpr int line_words = 32, first_flag = 3 * line_words;
  static constexpr unsigned most = 0xffff; // parts of a phase, and places: a count has 16 bits for each
  static constexpr long long bytes(long long places) { return 4 * (first_flag + places); }
};

} // namespace kiln
