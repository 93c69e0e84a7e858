// Streams: what families share that stream tensors through lanes, a vector of elements at a time.
#pragma once
#include "gen/families/common/promises.h"
#include "gen/plan/passes.h"
#include "gen/plan/target.h"
#include "templates/common/config.h"
#include <vector>

namespace kiln {

// VGPRs of each wave. Four waves per SIMD are the least with which a memory-bound kernel hides its own latency.
inline constexpr int vgprs_of_four_waves = max_vgprs / 4;
inline constexpr int vgprs_beside_streams = 28; // addresses, temporaries of one chunk beside vec * 2, reductions

// Elements that a lane handles at a time: 16 bytes of the narrowest input of elements, the widest access that exists, but at most
// two such accesses of the widest input. Outputs decide when there is no such input.
int preferred_vec(const Body& body);

// VGPRs of a lane for one chunk of `vec` elements of all tensors that a pass reads, of the pass that reads most; at least 1.
int widest_stream(const Body& body, const std::vector<Pass>& passes, int vec);

struct StreamedChunks {
  int vec = 1;
  int narrow = 0;  // loads of a stream that may be narrower: of single elements, or of what LLVM sees that a row's last chunk has
  int in_code = 1; // chunks that the code of a pass spells out
};
// Wide loads, registers for four waves per SIMD, packed conversion to fp8, no IEEE division that the spec did not ask for.
Promises stream_promises(const Body& body, const std::vector<Pass>& passes, const StreamedChunks& chunks, const Target& target);

// What the passes over one chunk of a lane demand of the chip.
struct ChunkWork {
  double far_bytes = 0, near_bytes = 0, written = 0; // near: what other rows read too, or an earlier pass did
  double again_bytes = 0;                            // of the near ones, a row's own
  double loads = 0, stores = 0;                      // instructions
  double instructions = 0;                           // all of them, in slots of four cycles
  double in_flight = 0;                              // bytes of the pass that loads most
};
ChunkWork chunk_work(const Body& body, const std::vector<Pass>& passes, int vec, const Target& target);

// For a wave that would take `vgprs`, when so many waves have to share a SIMD; 0: any number.
inline int wave_vgprs(int vgprs, int waves_per_eu) {
  return waves_per_eu > 0 && vgprs > vgprs_of_waves_per_eu(waves_per_eu) ? vgprs_of_waves_per_eu(waves_per_eu) : vgprs;
}

// Workgroups that a CU has room for, of so many waves with so many VGPRs each, and bytes of LDS.
double workgroups_per_cu(int waves, int vgprs, int lds_bytes, const Target& target);

} // namespace kiln
