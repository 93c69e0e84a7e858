// GemmTiles of a matrix for each expert: blocks of pairs that share an expert's weights.
#pragma once
#include "common/lane_instructions.h"
#include "gemm/dense.h"

namespace kiln {

// As expert_order and expert_offsets make them; the weight of each pair, of a sum.
struct SortedPairs {
  const i32 *order, *offsets;
  const f32* weights = nullptr;
};

template <GemmConfig config> class GemmTiles<config, true> {
  static constexpr ExpertsConfig experts = config.experts;
  static constexpr u32 tile_steps = config.steps_per_tile(), columns = config.tiles();

public:
  using Runs = Either<config.cuts_tiles(), PartRuns<config.workgroups, config.steps(), tile_steps>, StepRuns<config.workgroups, config.steps(), config.run_unit()>>;
  // `tile` counts columns.
  struct Segment : GemmSegment {
    u32 block;
    u32 expert = 0, first_pair = 0, pairs = 0;
  };

  KILN_MEMBER GemmTiles(u32 tokens, SortedPairs pairs, u32 block) : weights_(pairs.weights), tokens_(tokens), blocks_(may_have_steps(block) ? list(pairs) : 0) {}

  KILN_MEMBER u32 blocks() const { return blocks_; }
  KILN_MEMBER Runs runs() const {
    const u32 items = blocks_ * columns, steps = items * tile_steps;
    if constexpr (config.cuts_tiles()) return {steps, platform::uniform(config.parts_of(items))};
    else return {steps};
  }
  // Only those that have steps take each other's places: others have listed no blocks, and know no runs.
  KILN_DEVICE u32 run_of(u32 block, const Runs& runs) {
    const u32 active = smaller(runs.groups(), config.cuts_tiles() ? runs.steps : runs.steps / tile_steps);
    return block < active ? workgroup_in_order(block, active) : block;
  }
  template <class Steps> KILN_MEMBER void start(Steps& steps, u32 wave, const void*) const { steps.work_as(wave); }
  template <class Stream> KILN_MEMBER Segment first(const Stream& stream, u32 left) const {
    const u32 step = stream.first_step(), tile = step / tile_steps, at = step - tile * tile_steps, column = tile / blocks_;
    return listed({{column, at, smaller(tile_steps - at, left)}, tile - column * blocks_});
  }
  KILN_MEMBER Segment after(const Segment& s, u32 left) const {
    const bool wraps = s.block + 1 == blocks_;
    const Segment next{{s.tile + wraps, 0, smaller(tile_steps, left)}, wraps ? 0 : s.block + 1};
    return left ? listed(next) : next;
  }
  KILN_MEMBER u32 first_step_of(const Segment& s) const { return (s.tile * blocks_ + s.block) * tile_steps; }
  // The rows of A of a segment's block; and the matrix of its expert, of the first one's.
  KILN_MEMBER auto rows_of(const Segment& s) const {
    return [s](u32 row) KILN_LAMBDA { return experts.of_pairs ? pair_of(s, row) : pair_of(s, row) / experts.top; };
  }
  template <class B> KILN_DEVICE const B* matrix(const Segment& s, const B* b) {
    return reinterpret_cast<const B*>(reinterpret_cast<const char*>(b) + static_cast<u64>(s.expert) * config.bytes_of_expert());
  }
  template <class Matrix> KILN_DEVICE Matrix matrix(const Segment& s, Matrix b) {
    b.values = matrix(s, b.values);
    b.scale += static_cast<u64>(s.expert) * config.scales_of_expert();
    if constexpr (requires { b.zero; }) b.zero += static_cast<u64>(s.expert) * config.zero_bytes_of_expert();
    return b;
  }
  KILN_DEVICE TilePlace place(const Segment& s, u32 row, u32 column) {
    return {pair_of(s, row), row < s.pairs ? s.tile * config.tile_n + column : config.n, experts.pairs()};
  }

  // The result of a pair, and those of each token's pairs in the order of its experts, each times its weight.
  template <class Part> KILN_DEVICE void store(f32* of_pairs, const Segment& s, u32 row, u32 in_tile, const Part& part) {
    const u32 column = s.tile * config.tile_n + in_tile, pair = pair_of(s, row);
    if (row < s.pairs && column < config.n) *reinterpret_cast<Part*>(of_pairs + static_cast<u64>(pair) * config.n + column) = part;
  }
  template <class Part, class Put> KILN_MEMBER void add_pairs(u32 column, const f32* of_pairs, Put put) const {
    constexpr u32 chunks = config.chunks_per_row();
    for (u32 i = platform::thread_id(); i < tokens_ * chunks; i += config.threads()) {
      const u32 token = i / chunks, at = column * config.tile_n + i % chunks * config.vec;
      if (config.n_tail() && at >= config.n) continue;
      const f32* const weights = weights_ + token * experts.top;
      const f32* const results = of_pairs + static_cast<u64>(token) * experts.top * config.n + at;
      Part sum(0);
#pragma unroll
      for (int rank = 0; rank < experts.top; ++rank) sum += Part(weights[rank]) * *reinterpret_cast<const Part*>(results + rank * config.n);
      put(TilePlace{token, at, tokens_}, sum);
    }
  }

private:
  struct Lists {
    u32 blocks[config.blocks()];
    u32 count;
    u16 pairs[experts.pairs()]; // in the order of their experts
  };
  static KILN_MEMBER Lists& lists() {
    static __shared__ Lists memory;
    return memory;
  }
  static constexpr int pair_bits = 12, rows_bits = 8; // of a block: its first pair, how many it has, and the expert

  // Others leave without a look at the pairs, whatever these are.
  KILN_MEMBER bool may_have_steps(u32 block) const {
    constexpr u32 parts = config.cuts_tiles() ? config.max_tile_parts() : 1;
    return block < parts * columns * config.blocks_of(tokens_ * experts.top);
  }

  // Every workgroup lists the blocks of all experts, and returns how many there are. The first wave does it, 64 experts at a time.
  KILN_MEMBER u32 list(SortedPairs sorted) const {
    const u32 thread = platform::thread_id();
    if (thread < wave_size) {
      u32 before = 0;
      for (u32 first = 0; first < experts.count; first += wave_size) {
        const u32 expert = smaller(first + thread, experts.count - 1);
        const u32 begin = sorted.offsets[expert], end = first + thread < experts.count ? static_cast<u32>(sorted.offsets[expert + 1]) : begin;
        const u32 blocks = (end - begin + config.rows - 1) / config.rows, up_to = platform::sum_up_to_lane(blocks);
        u32 place = before + up_to - blocks;
        for (u32 pair = begin; pair < end; pair += config.rows)
          lists().blocks[place++] = pair | smaller(end - pair, config.rows) << pair_bits | expert << (pair_bits + rows_bits);
        before += platform::read_lane(up_to, wave_size - 1);
      }
      if (thread == 0) lists().count = before;
    }
    for (u32 i = thread; i < tokens_ * experts.top; i += config.threads()) lists().pairs[i] = static_cast<u16>(sorted.order[i]);
    platform::barrier();
    return platform::uniform(lists().count);
  }

  KILN_DEVICE Segment listed(Segment s) {
    const u32 block = platform::uniform(lists().blocks[s.block]);
    s.first_pair = block & ((1u << pair_bits) - 1);
    s.pairs = block >> pair_bits & ((1u << rows_bits) - 1);
    s.expert = block >> (pair_bits + rows_bits);
    return s;
  }
  // Pair `row` of a segment's block; the last one where the block has fewer.
  KILN_DEVICE u32 pair_of(const Segment& s, u32 row) { return lists().pairs[s.first_pair + smaller(row, s.pairs - 1)]; }

  const f32* weights_;
  u32 tokens_, blocks_;
};

} // namespace kiln
