// LargestOfRows: the largest magnitude of each row of A, which every workgroup finds for itself before it multiplies.
#pragma once
#include "common/convert.h"
#include "common/memory_instructions.h"
#include "common/reduce.h"
#include "gemm_config.h"

namespace kiln {

template <GemmConfig config> struct LargestOfRows {
  static constexpr f32 least = 0x1p-100f;
  static constexpr u32 of_xcd = ceil_div(config.workgroups, xcds);

  static KILN_MEMBER f32* in_lds() {
    static __shared__ f32 memory[config.rows];
    return memory;
  }
  // One a row; all threads of the workgroup call it. NaN is passed over. `block`: of config.workgroups. Workgroups of an XCD begin at rows of
  // their own, so that one's come from memory while others are asked for, and not all wait for each.
  template <class A> static KILN_MEMBER const f32* find(const A* a, u32 rows, u32 block) {
    f32* const largest = in_lds();
    constexpr u32 per_load = 16 / sizeof(A), chunks = config.k / per_load;
    constexpr u32 at_a_time = config.largest_in_flight(), end = config.largest_trips() * at_a_time * wave_size;
    const u32 thread = platform::thread_id(), lane = thread % wave_size, wave = platform::uniform(thread / wave_size);
    const u32 first_row = block / xcds * rows / of_xcd;
    for (u32 nth = wave; nth < rows; nth += config.waves) {
      const u32 row = first_row + nth < rows ? first_row + nth : first_row + nth - rows;
      const char* const begin = reinterpret_cast<const char*>(a) + static_cast<u64>(row) * config.a_row_bytes();
      f32 most = least;
#pragma nounroll
      for (u32 first = lane; first < end; first += at_a_time * wave_size) {
        platform::u32x4 words[at_a_time]; // those behind the end are the last one again, so that no load waits for a comparison
#pragma unroll
        for (u32 i = 0; i < at_a_time; ++i) words[i] = platform::load_word(begin, smaller(first + i * wave_size, chunks - 1) * 16);
#pragma unroll
        for (u32 i = 0; i < at_a_time; ++i) {
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
