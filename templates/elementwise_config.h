// ElementwiseConfig: how workgroups cover a flat run of elements. Shared by the host and the device.
#pragma once
#include "common/config.h"

namespace kiln {

struct ElementwiseConfig {
  int vec = 1;       // consecutive elements that a lane handles at a time
  int threads = 256; // of a workgroup
  int chunks = 1;    // of `vec` elements that a lane handles
  int prefetch_depth = 1;     // of them whose loads are in flight at a time
  int waves_per_eu = 0; // of a SIMD, that registers have to leave room for; 0: as many as they do
  bool exact = false; // the number of elements is a multiple of tile(): no workgroup has a partial end

  constexpr int tile() const { return threads * vec * chunks; }
  bool operator==(const ElementwiseConfig&) const = default;
};

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const ElementwiseConfig& c) {
  if (!is_power_of_two(c.vec) || c.vec > 16) return "vec must be 1, 2, 4, 8 or 16";
  if (c.threads < wave_size || c.threads > max_workgroup_size || c.threads % wave_size) return "threads must be a multiple of 64 from 64 to 1024";
  if (c.chunks < 1 || c.chunks > 64) return "chunks must be from 1 to 64";
  if (c.prefetch_depth < 1 || c.prefetch_depth > c.chunks) return "prefetch_depth must be from 1 to chunks";
  return why_invalid_waves_per_eu(c.waves_per_eu);
}

} // namespace kiln
