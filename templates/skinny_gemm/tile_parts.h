// TileParts: what a lane has of a finished tile, in chunks: the sums of waves, and of workgroups that share it.
#pragma once
#include "common/arrival.h"
#include "common/lane_instructions.h"
#include "common/tile_chunk.h"
#include "skinny_gemm/segment.h"
#include "skinny_gemm_config.h"

namespace kiln {

// A number of a part, and how many launches there were before, plus one. Both are written and read as one, so that nothing else needs an
// order: no fence, and no wait for an acknowledgement.
struct ToldNumber {
  f32 value;
  u32 generation;
};

template <SkinnyGemmConfig config> struct TileParts {
  using Part = Vec<f32, config.vec>;
  static constexpr int chunks = config.chunks();
  struct Lds {
    f32 tiles[config.planes()][config.rows * config.lds_row()]; // the sums of each wave
    u32 arrived;
  };
  static KILN_MEMBER Lds& lds() {
    static __shared__ Lds memory;
    return memory;
  }

  Part of[config.chunks()][config.products];

  KILN_DEVICE u32 row(int c) { return (c * config.threads() + platform::thread_id()) / config.chunks_per_row(); }
  KILN_DEVICE u32 column(int c) { return (c * config.threads() + platform::thread_id()) % config.chunks_per_row() * config.vec; }
  KILN_DEVICE bool in_tile(int c) { return config.rows * config.chunks_per_row() % config.threads() == 0 || row(c) < config.rows; }
  // The place of a number that is told: those of a wave lie side by side.
  KILN_DEVICE u32 word(int c, int p, int i) { return ((c * config.products + p) * config.vec + i) * config.threads() + platform::thread_id(); }
  KILN_DEVICE u32 offset(int c, int p) { return ((c * config.products + p) * config.threads() + platform::thread_id()) * config.vec; }
  // f(c, p) of every part that this lane has.
  template <class F> static KILN_MEMBER void each(F f) {
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p)
        if (in_tile(c)) f(c, p);
  }

  KILN_MEMBER void clear() {
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p) of[c][p] = Part(0);
  }
  // The sums of the waves, which lie in LDS.
  KILN_MEMBER void sum_waves() {
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p) of[c][p] = sum_of_waves(c, p);
  }
  // To `place`, and from there.
  KILN_MEMBER void store(f32* place) const {
    each([&](int c, int p) KILN_LAMBDA { *reinterpret_cast<Part*>(place + offset(c, p)) = of[c][p]; });
  }
  KILN_MEMBER void add(const f32* place) {
    each([&](int c, int p) KILN_LAMBDA { of[c][p] += *reinterpret_cast<const Part*>(place + offset(c, p)); });
  }

  // Leaves the part at `place`, for a workgroup of the same launch that hears it there.
  KILN_MEMBER void tell(u64* place, u32 generation) const {
    each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
      for (int i = 0; i < config.vec; ++i)
        platform::store_for_device(place + word(c, p, i), KILN_BIT_CAST(u64, (ToldNumber{of[c][p][i], generation})));
    });
  }
  // Becomes the sum of the parts of workgroups `first` to `last`, in that order; this one's is `own`. Waits for what is on its way.
  // Nobody wrote to this one's own place, which is as far as HBM: another one is read twice in its stead.
  template <class PlaceOf> KILN_MEMBER void hear(u32 first, u32 last, u32 own, u32 generation, PlaceOf place_of) {
    constexpr int together = config.parts_at_a_time();
    const TileParts mine = *this;
    const u32 other = own == first ? last : first;
    const auto read = [&](u32 group) KILN_LAMBDA { return group >= last ? (own == last ? other : last) : group == own ? other : group; };
    clear();
#pragma nounroll
    for (u32 group = first; group <= last; group += together) {
      ToldNumber heard[chunks][config.products][together][config.vec];
      bool late;
      do {
        late = false;
        each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
          for (int g = 0; g < together; ++g)
#pragma unroll
            for (int i = 0; i < config.vec; ++i)
              heard[c][p][g][i] = KILN_BIT_CAST(ToldNumber, platform::load_for_device(place_of(read(group + g)) + word(c, p, i)));
        });
        each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
          for (int g = 0; g < together; ++g)
#pragma unroll
            for (int i = 0; i < config.vec; ++i)
              late |= heard[c][p][g][i].generation != generation;
        });
      } while (platform::any_lane(late));
#pragma unroll
      for (int g = 0; g < together; ++g)
        if (group + g <= last) each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
          for (int i = 0; i < config.vec; ++i) of[c][p][i] += group + g == own ? mine.of[c][p][i] : heard[c][p][g][i].value;
        });
    }
  }

private:
  static KILN_MEMBER Part sum_of_waves(int c, int p) {
    const auto& tiles = lds().tiles;
    u32 at_row = row(c);
    if (config.rows * config.chunks_per_row() % config.threads()) at_row = smaller(at_row, config.rows - 1);
    const u32 at = at_row * config.lds_row() + p * config.tile_n + column(c);
    Part sum = *reinterpret_cast<const Part*>(&tiles[0][at]);
#pragma unroll
    for (int w = 1; w < config.planes(); ++w) sum += *reinterpret_cast<const Part*>(&tiles[w][at]);
    return sum;
  }
};

} // namespace kiln
