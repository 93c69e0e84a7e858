// LargestOfRows: the largest magnitude of each row of A, which every workgroup finds for itself before it multiplies.
#pragma once
#include "common/convert.h"
#include "common/memory_instructions.h"
#include "common/reduce.h"
#include "gemm_config.h"

namespace kiln {

template <GemmConfig config> struct LargestOfRows {
  static constexpr f32 least = 0x1p-100f;
  static constexpr int max_in_flight = 8; // loads of a lane; gen/families/gemm/demand.cpp counts them

  static KILN_MEMBER f32* in_lds() {
    static __shared__ f32 memory[config.rows];
    return memory;
  }
  // One a row; all threads of the workgroup call it. NaN is passed over.
  template <class A> static KILN_MEMBER const f32* find(const A* a, u32 rows) {
    f32* const largest = in_lds();
    constexpr u32 per_load = 16 / sizeof(A), chunks = config.k / per_load;
    constexpr int loads = ceil_div(chunks, wave_size), rounds = ceil_div(loads, max_in_flight), at_a_time = ceil_div(loads, rounds);
    const u32 thread = platform::thread_id(), lane = thread % wave_size;
    for (u32 row = thread / wave_size; row < rows; row += config.waves) {
      const char* const begin = reinterpret_cast<const char*>(a) + static_cast<u64>(row) * config.a_row_bytes();
      f32 most = least;
#pragma nounroll
      for (u32 first = lane; first < rounds * at_a_time * wave_size; first += at_a_time * wave_size) {
        platform::u32x4 words[at_a_time]; // those behind the end are the last one again, so that no load waits for a comparison
#pragma unroll
        for (int i = 0; i < at_a_time; ++i) words[i] = platform::load_word(begin, smaller(first + i * wave_size, chunks - 1) * 16);
#pragma unroll
        for (int i = 0; i < at_a_time; ++i) {
          const auto numbers = convert<Vec<f32, per_load>>(bit_cast<Vec<A, per_load>>(words[i]));
#pragma unroll
          for (u32 n = 0; n < per_load; ++n) most = platform::max(most, platform::abs(numbers[n]));
        }
      }
      most = across_lanes<MaxOf, wave_size>(most);
      if (lane == 0) largest[row] = most;
    }
    for (u32 row = rows + thread; row < config.rows; row += config.threads()) largest[row] = least; // rows that do not exist
    platform::barrier();
    return largest;
  }
};

} // namespace kiln
