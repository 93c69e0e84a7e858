// WideRanksConfig: the largest elements of rows too wide for a wave. Shared by the host and the device.
#pragma once
#include "rowwise_config.h"

namespace kiln {

struct WideRanksConfig {
  int cols = 0;           // elements of a row
  int ranks = 0;          // how many of them are found
  int vec = 1;            // consecutive elements that a lane reads at a time
  int tiles = 1;          // workgroups that read a row; the last one ranks
  int prefetch_depth = 1; // chunks whose loads are in flight at a time

  static constexpr int group = 64; // columns of which the largest is kept: those of one wave where candidates are read
  // Two waves a SIMD: what each wave does for all of them counts, once a row is ranked.
  constexpr int threads() const { return 512; }
  constexpr int waves() const { return threads() / wave_size; }
  constexpr int groups() const { return ceil_div(cols, group); }
  // A row's part that a workgroup reads, as rows are read elsewhere.
  constexpr RowwiseConfig streamed() const {
    return {.cols = cols, .vec = vec, .threads_per_row = threads(), .tiles = tiles, .prefetch_depth = prefetch_depth, .residency = Residency::reload};
  }
  // 4-byte words: a counter a row, then its groups.
  constexpr int workspace_words() const { return tiles > 1 ? 1 + groups() : 0; }
  // Groups that are searched, and elements of them that are ranked, without a look at which of those alike come first: a threshold that
  // keeps no more is found in a round or two.
  constexpr int max_searched() const { return ranks + group; }
  constexpr int max_ranked() const { return ceil_div(ranks + 2 * group, wave_size) * wave_size; }
  constexpr int lds_bytes() const { return (tiles > 1 ? 0 : 4 * groups()) + 8 * 1024 + 20 * max_ranked(); } // an upper bound, by less than 2 KiB
  bool operator==(const WideRanksConfig&) const = default;
};

constexpr const char* why_invalid(const WideRanksConfig& c) {
  if (c.cols < 1 || c.cols > 1 << 18) return "cols must be from 1 to 262144";
  if (c.ranks < 1 || c.ranks > 256 || c.ranks > c.cols) return "ranks must be from 1 to 256, and no more than cols";
  if (c.vec > c.group) return "vec must be 64 at most";
  return why_invalid(c.streamed());
}

} // namespace kiln
