// Promises of generated kernels: what all of them have in common, and what several problems in one launch come to.
#pragma once
#include "gen/plan/target.h"
#include "machine/promises.h"

namespace kiln {

// What every kernel promises: no scratch memory, no spills, no code of a published fault of a chip or a compiler. The templates
// address device memory as such, and cross lanes by DPP: both cost an instruction, while flat_ waits for LDS too and ds_bpermute costs the
// latency of LDS.
Promises promises_of_all();

// No more registers than leave room for so many waves per SIMD; 0 promises nothing more.
void limit_to_waves_per_eu(Promises& promises, int waves);

// What a launch of both promises. The code of all problems keeps what each one says of its own: limits are the largest, what one
// forbids another may need.
Promises together(const Promises& a, const Promises& b);

} // namespace kiln
