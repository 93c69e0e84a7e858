// Streams: what families share that stream tensors through lanes, a vector of elements at a time.
#pragma once
#include "gen/families/common/promises.h"
#include "gen/plan/passes.h"
#include "gen/plan/target.h"
#include "templates/common/config.h"
#include <vector>

namespace kiln {

// VGPRs of each wave. Four waves a SIMD are the least with which a memory-bound kernel hides its own latency.
inline constexpr int vgprs_of_four_waves = max_vgprs / 4;

// Elements that a lane handles at a time: 16 bytes of the narrowest input of elements, the widest access that exists, but at most
// two such accesses of the widest input. Outputs decide when there is no such input.
int preferred_vec(const Body& body);

// VGPRs of a lane for one chunk of `vec` elements of all tensors that a pass reads, of the pass that reads most; at least 1.
int widest_stream(const Body& body, const std::vector<Pass>& passes, int vec);

struct StreamedChunks {
  int vec = 1;
  bool ends = false; // rows, or the flat run, may end within a chunk, whose elements are then moved one by one
  int in_code = 1;   // chunks that the code of a pass spells out
};
// Wide loads, registers for four waves a SIMD, packed conversion to fp8, no IEEE division that the spec did not ask for.
Promises stream_promises(const Body& body, const std::vector<Pass>& passes, const StreamedChunks& chunks, const Target& target);

} // namespace kiln
