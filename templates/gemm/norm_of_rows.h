// NormOfRows: what each row of A is multiplied by when it is normed, from sums of its squares that another kernel left.
#pragma once
#include "common/reduce.h"
#include "gemm_config.h"

namespace kiln {

// The numbers of a row whose sum is that of its squares, [m, config.a.norm_parts]; what its quantised numbers are multiplied by; and what
// keeps the root from 0.
struct RowNorm {
  const f32* squares;
  const f32* scale;
  f32 epsilon;
};

struct NoNorm {};

template <GemmConfig config> struct NormOfRows {
  static constexpr int rows_of_wave = ceil_div(config.rows, config.waves), parts_of_lane = ceil_div(config.a.norm_parts, wave_size);
  // The parts of the rows that a wave adds up, in flight.
  struct Loaded {
    f32 of[rows_of_wave][parts_of_lane > 0 ? parts_of_lane : 1];
  };

  static KILN_MEMBER f32* in_lds() {
    static __shared__ f32 memory[config.rows];
    return memory;
  }
  static KILN_MEMBER Loaded load(const RowNorm& norm, u32 rows) {
    Loaded loaded;
#pragma unroll
    for (int r = 0; r < rows_of_wave; ++r) {
      const u32 row = row_of(r), lane = platform::thread_id() % wave_size;
      const f32* const begin = norm.squares + static_cast<u64>(row < rows ? row : rows - 1) * config.a.norm_parts;
#pragma unroll
      for (int i = 0; i < parts_of_lane; ++i) {
        const u32 part = lane + i * wave_size;
        loaded.of[r][i] = begin[config.a.norm_parts % wave_size && part >= config.a.norm_parts ? config.a.norm_parts - 1 : part];
      }
    }
    return loaded;
  }
  // rsqrt(mean of squares + epsilon) / scale, one a row; all threads of the workgroup call it.
  static KILN_MEMBER const f32* find(const Loaded& loaded, const RowNorm& norm, u32 rows) {
    f32* const factors = in_lds();
    const u32 lane = platform::thread_id() % wave_size;
    const f32 scale = *norm.scale;
#pragma unroll
    for (int r = 0; r < rows_of_wave; ++r) {
      f32 sum = 0;
#pragma unroll
      for (int i = 0; i < parts_of_lane; ++i) sum += lane + i * wave_size < config.a.norm_parts ? loaded.of[r][i] : 0.0f;
      sum = across_lanes<SumOf, wave_size>(sum);
      if (lane == 0 && row_of(r) < config.rows)
        factors[row_of(r)] = row_of(r) < rows ? platform::rsqrt(sum * (1.0f / config.k) + norm.epsilon) / scale : 0.0f;
    }
    platform::barrier();
    return factors;
  }

private:
  KILN_DEVICE u32 row_of(int r) { return platform::uniform(platform::thread_id() / wave_size) + r * config.waves; }
};

} // namespace kiln
