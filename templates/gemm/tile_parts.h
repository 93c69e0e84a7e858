// TileParts: what a lane has of a finished tile, in chunks: the sums of waves, and of workgroups that share it.
#pragma once
#include "common/lane_instructions.h"
#include "common/loops.h"
#include "common/tile_chunk.h"
#include "gemm/segment.h"
#include "gemm_config.h"

namespace kiln {

template <GemmConfig config> struct TileParts {
  using Part = Vec<f32, config.vec>;
  static constexpr int chunks = config.chunks(), chunk_rows = chunks;
  static constexpr int chunk_columns = config.threads() % config.chunks_per_row() == 0 ? 1 : chunks; // of chunks, those that differ
  struct Lds {
    f32 tiles[config.planes()][config.sum_rows() * config.lds_row()]; // the sums of each wave
    u32 arrived;
  };
  static KILN_MEMBER Lds& lds() {
    static __shared__ Lds memory;
    return memory;
  }

  Part of[chunks][config.products];

  KILN_DEVICE u32 row(int c, u32 thread = platform::thread_id()) { return (c * config.threads() + thread) / config.chunks_per_row(); }
  KILN_DEVICE u32 column(int c, u32 thread = platform::thread_id()) {
    return (c * config.threads() + thread) % config.chunks_per_row() * config.vec;
  }
  KILN_DEVICE bool in_tile(int c) { return config.rows * config.chunks_per_row() % config.threads() == 0 || row(c) < config.rows; }
  KILN_DEVICE u32 offset(int c, int p) { return ((c * config.products + p) * config.threads() + platform::thread_id()) * config.vec; }
  // f(c, p) of every part that this lane has.
  template <class F> static KILN_MEMBER void each_part(F f) {
    for_each<chunks, config.products>([&](int c, int p) KILN_LAMBDA {
      if (in_tile(c)) f(c, p);
    });
  }

  // The sums of the waves, of which LDS has the rows of a round.
  KILN_MEMBER void sum_waves(int round) {
    constexpr int each = config.sum_rounds() == 1 ? chunks : config.sum_rows() * config.chunks_per_row() / config.threads();
    for_each<chunks, config.products>([&](int c, int p) KILN_LAMBDA {
      if (c / each == round) of[c][p] = sum_of_waves(c, p, round * config.sum_rows());
    });
  }
  // As a part of gemm/stream_k.h.
  static constexpr int numbers = config.lane_numbers();
  template <class F> static KILN_MEMBER void each_number(F f) {
    each_part([&](int c, int p) KILN_LAMBDA {
#pragma unroll
      for (int i = 0; i < config.vec; ++i) f((c * config.products + p) * config.vec + i);
    });
  }
  KILN_DEVICE bool is_own(int) { return true; }
  KILN_DEVICE u32 word(int i) { return i * config.threads() + platform::thread_id(); } // those of a wave lie side by side
  KILN_MEMBER f32 number(int i) const { return of[i / config.vec / config.products][i / config.vec % config.products][i % config.vec]; }
  KILN_MEMBER void clear() {
    for_each<chunks, config.products>([&](int c, int p) KILN_LAMBDA { of[c][p] = Part(0); });
  }
  template <class F> KILN_MEMBER void add(F number) {
    each_number([&](int i) KILN_LAMBDA { of[i / config.vec / config.products][i / config.vec % config.products][i % config.vec] += number(i); });
  }

private:
  static KILN_MEMBER Part sum_of_waves(int c, int p, u32 first_row) {
    const auto& tiles = lds().tiles;
    u32 at_row = row(c);
    if (config.rows * config.chunks_per_row() % config.threads()) at_row = smaller(at_row, config.rows - 1);
    const u32 at = (at_row - first_row) * config.lds_row() + p * config.tile_n + column(c);
    Part sum = *reinterpret_cast<const Part*>(&tiles[0][at]);
#pragma unroll
    for (int w = 1; w < config.planes(); ++w) sum += *reinterpret_cast<const Part*>(&tiles[w][at]);
    return sum;
  }
};

} // namespace kiln
