// Arrival: workgroups each leave a part in memory; the last one finds out that it is the last, and sees the parts of all.
#pragma once
#include "common/memory_instructions.h"

namespace kiln {

// All lanes of a workgroup call it behind the stores of their parts. The workgroup counts for `by`, and is the last if the others, who
// count for `others` in all, were there before: then it is true, `counter` is zero again for the next launch, and what the others stored
// can be read. `arrived` lies in LDS. Formally: release before the counter, acquire after it, both at agent scope, as L2s of XCDs differ.
KILN_DEVICE bool arrives_last(u32* counter, u32 others, u32& arrived, u32 by = 1) {
  platform::release_to_device();
  platform::barrier();
  if (platform::thread_id() == 0) arrived = platform::count_up(counter, by);
  platform::barrier();
  if (platform::uniform(arrived) != others) return false;
  platform::acquire_from_device();
  if (platform::thread_id() == 0) *counter = 0;
  return true;
}

} // namespace kiln
