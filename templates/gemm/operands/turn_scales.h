// Scales of 4-bit weights, four groups of k a load: what a lane needs of them for a turn of the ring, and for the next one.
//
// The steps of a wave are consecutive, and so are the scales of a row: a load of 8 bytes has the scales of four groups, one of
// 4 bytes their zero points. A turn's scales are loaded before its first step and arrive before it: taking them waits for no load that
// should stay in flight.
#pragma once
#include "common/loops.h"
#include "common/memory.h"
#include "gemm/operands/int4.h"

namespace kiln {

template <GemmConfig config> class TurnScales {
  using Operands = Int4Operands<config>;
  static constexpr int per_load = config.load_k() / config.b.group, quads = config.scale_quads();

public:
  // For the turn that starts `step` steps after the current one. Beyond the end of a row its last four groups are read.
  KILN_MEMBER void load(Operands& from, u32 step) {
    for_each<config.products, Operands::rows, quads>([&](int p, int i, int q) KILN_LAMBDA {
      const u32 first = clamped(wanted(from, step, q));
      platform::pin_vgpr(from.scale_row[i]);
      platform::pin_vgpr(from.zero_row[i]);
      const char *const scale = from.scale[p] + first * 2, *const zero = from.zero[p] + first; // uniform
      next_[p][i][q] = {reinterpret_cast<const detail::Place<8, 2>*>(scale + from.scale_row[i])->value,
                        reinterpret_cast<const detail::Place<4, 1>*>(zero + from.zero_row[i])->value};
    });
  }
  // The loaded ones become those of the current turn, the one that `from` is at: the lane's first group lowest.
  KILN_MEMBER void take(const Operands& from) {
    for_each<config.products, Operands::rows, quads>([&](int p, int i, int q) KILN_LAMBDA {
      const u32 first = wanted(from, 0, q), skipped = first - clamped(first) + (per_load > 1 ? from.position.lane_part() : 0);
      const Four& four = next_[p][i][q];
      scale_[p][i][q] = bit_cast<u64>(four.scale) >> (skipped * 16 & 63);
      zero_[p][i][q] = four.zero >> (skipped * 8 & 31);
    });
  }
  // Those of the turn's step `step`.
  KILN_MEMBER void give(Int4Words<config>& to, int step) const {
#pragma unroll
    for (int u = 0; u < config.loads; ++u) {
      const int at = (step * config.loads + u) * per_load;
#pragma unroll
      for (int p = 0; p < config.products; ++p)
#pragma unroll
        for (int i = 0; i < Operands::rows; ++i) {
          to.scale[p][i][u] = static_cast<u16>(scale_[p][i][at / 4] >> (at % 4 * 16));
          to.zero[p][i][u] = static_cast<u8>(zero_[p][i][at / 4] >> (at % 4 * 8));
        }
    }
  }

private:
  struct Four {
    Vec<u32, 2> scale;
    u32 zero;
  };
  KILN_DEVICE u32 wanted(const Operands& from, u32 step, int quad) { return (from.position.at + step) * (config.loads * per_load) + quad * 4; }
  KILN_DEVICE u32 clamped(u32 group) { return group < config.groups() - 4u ? group : config.groups() - 4u; }

  Four next_[config.products][Operands::rows][quads];
  u64 scale_[config.products][Operands::rows][quads];
  u32 zero_[config.products][Operands::rows][quads];
};

} // namespace kiln
