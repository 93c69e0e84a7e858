// GroupedGemm<config>: tokens times the matrices of their experts. Which steps a workgroup takes, and how sums meet.
#pragma once
#include "common/arrival.h"
#include "gemm/stream_k.h"
#include "grouped_gemm_config.h"
#include "gemm/ring.h"
#include "gemm/tile_parts.h"

namespace kiln {

namespace detail {

// The matrix of an expert: a pointer, or a struct of its encoding.
template <GroupedGemmConfig config, class B> KILN_DEVICE const B* of_expert(const B* b, u64 expert) {
  return reinterpret_cast<const B*>(reinterpret_cast<const char*>(b) + expert * config.bytes_of_expert());
}
template <GroupedGemmConfig config, class Matrix> KILN_DEVICE Matrix of_expert(Matrix b, u64 expert) {
  b.values = of_expert<config>(b.values, expert);
  b.scale += expert * config.scales_of_expert();
  if constexpr (requires { b.zero; }) b.zero += expert * config.zero_bytes_of_expert();
  return b;
}

} // namespace detail

template <GroupedGemmConfig config, class A, class B> class GroupedGemm {
  static_assert(why_invalid(config) == nullptr, "invalid GroupedGemmConfig");
  static constexpr SkinnyGemmConfig tile = config.tile;
  static_assert(tile.a.bits == gemm_bits<A> && tile.b.bits == gemm_bits<B>);
  using Parts = TileParts<tile>;
  using Part = typename Parts::Part;
  using Runs = StepRuns<tile.workgroups, config.steps()>;
  static constexpr u32 tile_steps = tile.steps_per_tile(), columns = config.column_tiles();

public:
  // From 1 to config.tokens `tokens`. `order` and `offsets` as expert_order and expert_offsets make them. `workspace` has
  // config.workspace_bytes(), zero before the first launch; every launch leaves zero what has to be. `a_scale`, with scales of blocks: [row
  // of A][group]; `weights`, of a sum: [pair].
  KILN_MEMBER GroupedGemm(const A* a, u32 tokens, const i32* order, const i32* offsets, void* workspace, const f32* weights = nullptr,
                          const void* a_scale = nullptr)
      : a_(a), a_scale_(a_scale), weights_(weights), tokens_(tokens), blocks_(list(order, offsets)),
        stream_(workspace, workgroup_in_order<tile.workgroups>(), Runs{blocks_ * (columns * tile_steps)}) {}

  // Multiplies with `b...`, the first expert's matrix for each product, and calls epilogue(TileChunk, one InRegisters<Part> a product) for
  // every chunk of the result that this workgroup finishes: rows are pairs, or tokens of a sum.
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) {
    u32 left = stream_.end_step() - stream_.first_step();
    if (left == 0) return stream_.skip();
    stream_.load_generation();
    const u32 wave = platform::uniform(platform::thread_id() / wave_size);
    GemmRing<tile, A, B> ring;
    ring.work_as(wave);
    Segment segment = segment_at(stream_.first_step(), left);
    begin(ring, segment, b...);
    for (bool again = false;; again = true) {
      u32 arrived = 0;
      ring.accumulate([&] KILN_LAMBDA {
        if (segment.count != tile_steps) arrived = stream_.register_arrival(first_step_of(segment));
      });
      arrived = platform::computed_here(arrived); // no wait for it behind the loads of the next segment
      left -= segment.count;
      Segment next = after(segment, left);
      if (left) begin(ring, next, b...);      // in flight while this tile is finished
      if (again) platform::barrier();         // LDS is read no more
      platform::settle_sums<tile.edge()>();
      ring.to_lds(Parts::lds().tiles[wave]);
      if (platform::thread_id() == 0) Parts::lds().arrived = arrived;
      stream_.pin_generation();
      platform::barrier();
      stream_.store_generation();
      finish(segment, epilogue);
      if constexpr (config.sums)
        if (!left || next.column != segment.column) complete(segment.column, epilogue);
      if (!left) return;
      segment = next;
    }
  }

private:
  // Consecutive steps of one tile, with the block's expert and pairs.
  struct Segment {
    u32 column, block, first, count;
    u32 expert = 0, first_pair = 0, pairs = 0;
  };
  struct Lists {
    u32 blocks[config.blocks()];
    u32 count;
    u16 pairs[config.pairs()]; // in the order of their experts
  };
  static KILN_MEMBER Lists& lists() {
    static __shared__ Lists memory;
    return memory;
  }
  static constexpr int pair_bits = 12, rows_bits = 8; // of a block: its first pair, how many it has, and the expert

  // Every workgroup lists the blocks of all experts, and returns how many there are. The first wave does it, 64 experts at a time.
  KILN_MEMBER u32 list(const i32* order, const i32* offsets) {
    const u32 thread = platform::thread_id();
    if (thread < wave_size) {
      u32 before = 0;
      for (u32 first = 0; first < config.experts; first += wave_size) {
        const u32 expert = smaller(first + thread, config.experts - 1);
        const u32 begin = offsets[expert], end = first + thread < config.experts ? static_cast<u32>(offsets[expert + 1]) : begin;
        const u32 blocks = (end - begin + tile.rows - 1) / tile.rows, up_to = platform::sum_up_to_lane(blocks);
        u32 place = before + up_to - blocks;
        for (u32 pair = begin; pair < end; pair += tile.rows)
          lists().blocks[place++] = pair | smaller(end - pair, tile.rows) << pair_bits | expert << (pair_bits + rows_bits);
        before += platform::read_lane(up_to, wave_size - 1);
      }
      if (thread == 0) lists().count = before;
    }
    for (u32 i = thread; i < tokens_ * config.top; i += config.threads()) lists().pairs[i] = static_cast<u16>(order[i]);
    platform::barrier();
    return platform::uniform(lists().count);
  }

  KILN_MEMBER Segment listed(Segment s) const {
    const u32 block = platform::uniform(lists().blocks[s.block]);
    s.first_pair = block & ((1u << pair_bits) - 1);
    s.pairs = block >> pair_bits & ((1u << rows_bits) - 1);
    s.expert = block >> (pair_bits + rows_bits);
    return s;
  }
  KILN_MEMBER Segment segment_at(u32 step, u32 left) const {
    const u32 at = step / tile_steps, first = step - at * tile_steps, column = at / blocks_;
    return listed({column, at - column * blocks_, first, smaller(tile_steps - first, left)});
  }
  KILN_MEMBER Segment after(const Segment& s, u32 left) const {
    const bool wraps = s.block + 1 == blocks_;
    const Segment next{s.column + wraps, wraps ? 0 : s.block + 1, 0, smaller(tile_steps, left)};
    return left ? listed(next) : next;
  }
  KILN_MEMBER u32 first_step_of(const Segment& s) const { return (s.column * blocks_ + s.block) * tile_steps; } // of its tile

  // Pair `row` of a segment's block; the last one where the block has fewer.
  KILN_DEVICE u32 pair_of(const Segment& s, u32 row) { return lists().pairs[s.first_pair + smaller(row, s.pairs - 1)]; }
  template <class... Bs> KILN_MEMBER void begin(GemmRing<tile, A, B>& ring, const Segment& s, Bs... b) const {
    ring.take_rows([s](u32 row) KILN_LAMBDA {
      const u32 pair = pair_of(s, row);
      return config.of_pairs ? pair : pair / config.top;
    }, a_scale_);
    ring.begin(GemmSegment{s.column, s.first, s.count}, a_, detail::of_expert<config>(b, s.expert)...);
  }

  // The waves' sums meet in LDS, those of several workgroups in the workspace.
  template <class Epilogue> KILN_MEMBER void finish(const Segment& segment, Epilogue& epilogue) {
    Parts parts;
    parts.sum_waves();
    if (segment.count != tile_steps) {
      const u32 begin = first_step_of(segment);
      if (!stream_.template combine<tile.parts_at_a_time()>(parts, begin, begin + tile_steps - 1, Parts::lds().arrived)) return;
    }
#pragma unroll
    for (int c = 0; c < Parts::chunks; ++c) {
      const u32 row = Parts::row(c), column = segment.column * tile.tile_n + Parts::column(c);
      const u32 pair = pair_of(segment, row);
      if constexpr (config.sums) {
        if (Parts::in_tile(c) && row < segment.pairs && column < tile.n) *reinterpret_cast<Part*>(sums() + static_cast<u64>(pair) * tile.n + column) = parts.of[c][0];
      } else {
        call(epilogue, pair, row < segment.pairs ? column : tile.n, config.pairs(), parts.of[c]);
      }
    }
    if constexpr (config.sums) ++finished_;
  }
  template <class Epilogue> KILN_DEVICE void call(Epilogue& epilogue, u32 row, u32 column, u32 rows, const Part (&parts)[tile.products]) {
    const TileChunk<tile.n, tile.vec> chunk(row, column, rows);
    if constexpr (tile.products == 1) epilogue(chunk, InRegisters<Part>{parts[0]});
    else epilogue(chunk, InRegisters<Part>{parts[0]}, InRegisters<Part>{parts[1]});
  }

  // The workgroup that finishes the last tile of some columns has the results of all pairs there, and adds those of each token, in the order
  // of its experts, each times its weight.
  KILN_MEMBER f32* sums() const { return reinterpret_cast<f32*>(stream_.behind()); }
  template <class Epilogue> KILN_MEMBER void complete(u32 column, Epilogue& epilogue) {
    const u32 finished = finished_;
    finished_ = 0;
    if (finished == 0) return;
    if (!arrives_last(stream_.own_counters() + column, blocks_ - finished, Parts::lds().arrived, finished)) return;
    constexpr u32 chunks = tile.chunks_per_row();
    for (u32 i = platform::thread_id(); i < tokens_ * chunks; i += config.threads()) {
      const u32 token = i / chunks, at = column * tile.tile_n + i % chunks * tile.vec;
      if (tile.n_tail() && at >= tile.n) continue;
      const f32* const weights = weights_ + token * config.top;
      const f32* const results = sums() + static_cast<u64>(token) * config.top * tile.n + at;
      Part sum[1] = {Part(0)};
#pragma unroll
      for (int rank = 0; rank < config.top; ++rank) sum[0] += Part(weights[rank]) * *reinterpret_cast<const Part*>(results + rank * tile.n);
      call(epilogue, token, at, tokens_, sum);
    }
  }

  const A* a_;
  const void* a_scale_;
  const f32* weights_;
  u32 tokens_, blocks_, finished_ = 0; // tiles of these columns
  StreamK<config.shared(), Runs, false> stream_;
};

} // namespace kiln
