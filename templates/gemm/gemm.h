// Gemm<config>: the tiles whose steps a workgroup takes, and how sums meet.
#pragma once
#include "common/arrival.h"
#include "gemm/dense.h"
#include "gemm/stream_k.h"
#include "gemm/prefetched.h"
#include "gemm/producers.h"
#include "gemm/ring.h"
#include "gemm/rows_ahead.h"
#include "gemm/staging.h"
#include "gemm/tile_parts.h"

namespace kiln {

template <GemmConfig config, class A, class B> class GemmSharedRows; // gemm/shared_rows.h

template <GemmConfig config, class A, class B> class Gemm {
  static_assert(why_invalid(config) == nullptr, "invalid GemmConfig");
  static_assert(config.a.bits == gemm_bits<A> && config.b.bits == gemm_bits<B>);
  using Parts = TileParts<config>;
  using Part = typename Parts::Part;
  using Tiles = GemmTiles<config>;
  using Runs = typename Tiles::Runs;
  using Segment = typename Tiles::Segment;
  static constexpr u32 tile_steps = config.steps_per_tile();

public:
  // `rows` of A exist, from 1 to config.rows; with experts, so many tokens. `workspace` has config.workspace_bytes(), zero before the first
  // launch; every launch leaves zero what has to be. `a_scale`, with scales of blocks: [row][group], or [group][row] with
  // a_scales_by_group; with norm_parts the weight of each column, of A's type.
  // `block`: of config.workgroups, whoever works on them.
  KILN_MEMBER Gemm(const A* a, u32 rows, void* workspace, const void* a_scale = nullptr, u32 block = platform::block_x())
      : Gemm(a, rows, workspace, a_scale, Tiles{rows}, block) {}
  template <class Pairs> requires(config.by_expert())
  KILN_MEMBER Gemm(const A* a, u32 tokens, void* workspace, const void* a_scale, Pairs pairs, u32 block = platform::block_x())
      : Gemm(a, tokens, workspace, a_scale, Tiles(tokens, pairs, block), block) {}

  // With norm_parts, before run.
  KILN_MEMBER void norm_by(RowNorm norm) {
    if constexpr (config.a.norm_parts > 0) norm_ = norm;
  }

  // Multiplies with `b...`, one matrix for each product (a pointer, or a struct of gemm/operands/), and calls
  // epilogue(TileChunk, one InRegisters<Part> a product) for every chunk of C that this workgroup finishes.
  // Operands of the epilogue that are prefetched follow the products: a value of a row as it is, a chunk InRegisters.
  template <class... Operands, class Epilogue, class... Bs> KILN_MEMBER void run(Prefetched<Operands...> operands, Epilogue epilogue, Bs... b) {
    run_with(operands, epilogue, b...);
  }
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) { run_with(prefetched(), epilogue, b...); }

  // With rows_at_end: the sums of a product, [rows][n] in the workspace, and whether this workgroup finished the last tile. It has all
  // sums then, and every other workgroup may leave.
  KILN_MEMBER f32* sums(int product) const {
    return reinterpret_cast<f32*>(workspace_ + config.partial_bytes() + product * config.sums_bytes());
  }
  KILN_MEMBER bool is_last() {
    if (finished_ == 0) return false;
    if constexpr (config.tiles() == 1) { // by this workgroup alone
      platform::release_to_workgroup();
      platform::barrier();
      platform::acquire_from_workgroup();
    } else {
      return arrives_last(stream_.own_counters(), config.tiles() - finished_, lds().arrived, finished_);
    }
    return true;
  }

private:
  KILN_MEMBER Gemm(const A* a, u32 rows, void* workspace, const void* a_scale, Tiles tiles, u32 block)
      : Gemm(a, rows, workspace, a_scale, tiles, block, tiles.runs()) {}
  KILN_MEMBER Gemm(const A* a, u32 rows, void* workspace, const void* a_scale, Tiles tiles, u32 block, Runs runs)
      : a_(a), a_scale_(a_scale), rows_(rows), block_(block), tiles_(tiles), stream_(workspace, Tiles::run_of(block, runs), runs), workspace_(static_cast<char*>(workspace)) {}
  static KILN_MEMBER typename Parts::Lds& lds() { return Parts::lds(); }

  template <class Operands, class Epilogue, class... Bs> KILN_MEMBER void run_with(Operands operands, Epilogue epilogue, Bs... b) {
    if constexpr (config.has_producers()) {
      // Each kind of wave has its own copy of the rest. If their paths met, each would need the registers of all.
      GemmSlots<config, A, B>::clear();
      const u32 wave = platform::uniform(platform::thread_id() / wave_size);
      constexpr u32 readers = config.summing_waves(), of_b = config.b_producers;
      if (wave < readers) run_as<GemmReader<config, A, B>>(wave, operands, epilogue, b...);
      else if (wave < readers + of_b) run_as<GemmLoader<config, A, B, true>>(wave - readers, operands, epilogue, b...);
      else run_as<GemmLoader<config, A, B, false>>(wave - readers - of_b, operands, epilogue, b...);
    } else if constexpr (config.shares_rows()) {
      run_one_tile(operands, epilogue, b...);
    } else {
      run_as<GemmRing<config, Either<config.staged, B, A>, B>>(platform::uniform(platform::thread_id() / wave_size), operands, epilogue, b...);
    }
  }

  // The tile of a block of rows that a workgroup has with method shared_rows. Blocks of the same columns are neighbours.
  template <class Operands, class Epilogue, class... Bs> KILN_MEMBER void run_one_tile(const Operands& operands, Epilogue& epilogue, Bs... b) {
    const u32 nth = workgroup_in_order(block_, config.workgroups), tile = nth / config.row_blocks;
    const u32 first = nth % config.row_blocks * config.row_tiles() * 16;
    using Ahead = Either<(config.rows_ahead_loads(xcds) > 0), RowsAhead<config>, NoRowsAhead>;
    const auto rows_ahead = Ahead::load(a_, rows_, block_);
    if (first >= rows_) {
      platform::pin_computed(rows_ahead); // its share, all the same
      return;
    }
    const u32 end = smaller(first + config.row_tiles() * 16, rows_);
    using Steps = GemmSharedRows<config, A, B>;
    Steps steps;
    steps.start({rows_, first, end, platform::uniform(platform::thread_id() / wave_size)}, a_scale_);
    steps.begin(tile, a_, b...);
    platform::pin_computed(rows_ahead);
    const auto place = [&](int c) KILN_LAMBDA { return TilePlace{first + steps.row(c), tile * config.tile_n + steps.column(c), end}; };
    typename Operands::template Values<config, Steps> values;
    steps.accumulate([&] KILN_LAMBDA {
      values.load(operands, [&](int c) KILN_LAMBDA { return existing_chunk(place(c)); });
    });
    values.pin();
    platform::await_mfma_results<config.edge()>();
    steps.each_chunk([&](int c, const Part (&parts)[config.products]) KILN_LAMBDA { call(epilogue, place(c), parts, values, c); });
  }

  // All segments, `index` counts the waves that work as Steps.
  template <class Steps, class Operands, class Epilogue, class... Bs>
  KILN_MEMBER void run_as(u32 index, const Operands& operands, Epilogue& epilogue, Bs... b) {
    u32 left = 0; // steps of this workgroup
    if constexpr (config.by_expert()) {
      left = stream_.end_step() - stream_.first_step();
      if (left == 0) {
        if constexpr (config.publishes()) stream_.skip();
        return;
      }
    }
    using Ahead = Either<(config.rows_ahead_loads(xcds) > 0), RowsAhead<config>, NoRowsAhead>;
    const auto rows_ahead = Ahead::load(a_, rows_, block_);
    Steps steps;
    tiles_.start(steps, index, a_scale_);
    if constexpr (config.quantises_steps()) find_factors(steps);
    if constexpr (config.publishes()) stream_.load_generation();
    if constexpr (!config.by_expert()) left = stream_.end_step() - stream_.first_step();
    Segment segment = tiles_.first(stream_, left);
    u32 arrived = 0;
    Either<config.staged, Staging<config, A, B>, NoStaging> staging(RowsToStage<config, A>{a_, rows_, block_, a_scale_, norm_});
    staging.begin(segment);
    begin(steps, segment, b...);
    if constexpr (!config.crosses()) arrived = register_arrival(segment); // behind the first loads: a wait for those would wait for it
    staging.finish(segment);
    platform::pin_computed(rows_ahead);
    for (bool again = false;; again = true) {
      typename Operands::template Values<config, Parts> values;
      steps.accumulate([&] KILN_LAMBDA {
        const u32 thread = platform::opaque_registers(platform::thread_id()); // rows and columns take no registers until the epilogue
        values.load(operands, [&](int c) KILN_LAMBDA { return existing_chunk(place(segment, c, thread)); });
        if constexpr (config.crosses()) arrived = register_arrival(segment);
      });
      if constexpr (config.crosses()) values.pin();
      if constexpr (config.publishes()) platform::schedule_barrier(); // or LLVM waits for it in front of the last steps
      if constexpr (config.publishes()) arrived = platform::pin_computed(arrived); // no wait for it behind the loads of the next segment
      left -= segment.count;
      const Segment next = tiles_.after(segment, left);
      if (config.crosses() && left) {
        staging.begin_next(segment, next);
        begin(steps, next, b...); // in flight while this tile is finished
      }
      if (config.crosses() && again) platform::barrier(); // LDS is read no more
      if constexpr (Steps::sums) {
        platform::await_mfma_results<config.edge()>();
        steps.to_lds(lds().tiles[index * config.planes_per_wave()], 0);
      }
      if constexpr (config.publishes()) {
        if (platform::thread_id() == 0) lds().arrived = arrived;
        stream_.pin_generation();
      }
      platform::barrier();
      if constexpr (!config.crosses()) values.pin(); // before that store: a wait for loads waits for stores in front, too
      if constexpr (config.publishes()) stream_.store_generation();
      finish(steps, index, segment, epilogue, values);
      if constexpr (config.experts.sums)
        if (!left || next.tile != segment.tile) add_pairs(segment.tile, epilogue);
      if (!config.crosses() || !left) return;
      staging.finish_next(segment, next);
      segment = next;
    }
  }

  // What the rows of A are multiplied by before they are quantised.
  template <class Steps> KILN_MEMBER void find_factors(Steps& steps) const {
    if constexpr (config.a.norm_parts > 0) steps.take_factors(NormOfRows<config>::find(NormOfRows<config>::load(norm_, rows_), norm_, rows_));
    else steps.take_largest(LargestOfRows<config>::find(a_, rows_, block_));
  }

  // The first loads of a segment. If A is staged, steps load none of it.
  template <class Steps, class... Bs> KILN_MEMBER void begin(Steps& steps, const Segment& segment, Bs... b) const {
    if constexpr (config.by_expert()) steps.take_rows(tiles_.rows_of(segment), a_scale_);
    if constexpr (config.staged) steps.begin(segment, nullptr, b...);
    else steps.begin(segment, a_, tiles_.matrix(segment, b)...);
  }

  // The waves' sums meet in LDS, those of several workgroups in the workspace.
  template <class Steps, class Epilogue, class Values>
  KILN_MEMBER void finish(const Steps& steps, u32 index, const Segment& segment, Epilogue& epilogue, const Values& values) {
    Parts parts;
    parts.sum_waves(0);
#pragma unroll
    for (int round = 1; round < config.sum_rounds(); ++round) { // as LDS has room for the sums of some rows only
      platform::barrier();
      if constexpr (Steps::sums) steps.to_lds(lds().tiles[index * config.planes_per_wave()], round);
      platform::barrier();
      parts.sum_waves(round);
    }
    if constexpr (config.a.norm_parts > 0) {
      const f32 scale = *norm_.scale;
      Parts::each_part([&](int c, int p) KILN_LAMBDA { parts.of[c][p] *= Part(scale); });
    } else if constexpr (config.a.quantises) {
      const f32* const largest = LargestOfRows<config>::in_lds();
      Parts::each_part([&](int c, int p) KILN_LAMBDA { parts.of[c][p] *= Part(largest[Parts::row(c)] / Fp8<B>::max); });
    }
    if (config.splits() && segment.count != tile_steps) {
      if (!combine(segment, parts)) return;
    }
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c) {
      if constexpr (!config.experts.sums) call(epilogue, place(segment, c), parts.of[c], values, c);
      else if (Parts::in_tile(c)) tiles_.store(sums(0), segment, Parts::row(c), Parts::column(c), parts.of[c][0]);
    }
    if constexpr (config.rows_at_end || config.experts.sums) ++finished_;
  }

  KILN_MEMBER TilePlace place(const Segment& segment, int c, u32 thread = platform::thread_id()) const {
    return tiles_.place(segment, Parts::row(c, thread), Parts::column(c, thread));
  }
  static KILN_MEMBER TileChunk<config.n, config.vec> chunk(TilePlace at) { return {at.row, at.column, at.rows}; }
  // In place of one that does not exist, one of the last row or at the end of rows.
  static KILN_MEMBER TileChunk<config.n, config.vec> existing_chunk(TilePlace at) {
    constexpr u32 last = (config.n - 1) / config.vec * config.vec;
    return chunk({smaller(at.row, at.rows - 1), config.n_tail() ? smaller(at.column, last) : at.column, at.rows});
  }
  template <class Epilogue, class Values>
  KILN_MEMBER void call(Epilogue& epilogue, TilePlace at, const Part (&parts)[config.products], const Values& values, int c) {
    if constexpr (config.products == 1) values.call(epilogue, c, chunk(at), InRegisters<Part>{parts[0]});
    else values.call(epilogue, c, chunk(at), InRegisters<Part>{parts[0]}, InRegisters<Part>{parts[1]});
  }

  // The workgroup that finishes the last tile of some columns has the results of all pairs there, and adds those of each token.
  template <class Epilogue> KILN_MEMBER void add_pairs(u32 column, Epilogue& epilogue) {
    const u32 finished = finished_;
    finished_ = 0;
    if (finished == 0 || !arrives_last(stream_.own_counters() + column, tiles_.blocks() - finished, lds().arrived, finished)) return;
    const typename Prefetched<>::Values<config, Parts> none;
    tiles_.template add_pairs<Part>(column, sums(0), [&](TilePlace at, const Part& sum) KILN_LAMBDA { call(epilogue, at, {sum}, none, 0); });
  }

  // Counts this workgroup for a tile of which it has a part.
  KILN_MEMBER u32 register_arrival(const Segment& segment) const {
    if constexpr (config.publishes())
      if (segment.count != tile_steps) return stream_.register_arrival(tiles_.first_step_of(segment));
    return 0;
  }

  // Publishes this workgroup's part of a tile, or adds it to the tile's in the workspace. The one that has the sum of all parts then, in the
  // order of k, or takes the sum and leaves zeros for the next launch, returns true.
  KILN_MEMBER bool combine(const Segment& segment, Parts& parts) {
    const u32 begin = tiles_.first_step_of(segment), end = begin + tile_steps;
    if constexpr (config.atomics) {
      f32* const sum = reinterpret_cast<f32*>(stream_.places()) + static_cast<u64>(segment.tile) * config.partial_floats();
      Parts::each_part([&](int c, int p) KILN_LAMBDA {
#pragma unroll
        for (int i = 0; i < config.vec; ++i) platform::add_for_device(sum + Parts::offset(c, p) + i, parts.of[c][p][i]);
      });
      const Runs runs{config.steps()};
      const u32 first = runs.group_of(begin);
      if (!arrives_last(stream_.counter(first), runs.group_of(end - 1) - first, lds().arrived)) return false;
      Parts::each_part([&](int c, int p) KILN_LAMBDA { parts.of[c][p] = *reinterpret_cast<const Part*>(sum + Parts::offset(c, p)); });
      // Waits here: lanes without a part of the tile would otherwise wait in the loop of the next segment.
      platform::await_loads<0>();
      Parts::each_part([&](int c, int p) KILN_LAMBDA { *reinterpret_cast<Part*>(sum + Parts::offset(c, p)) = Part(0); });
      return true;
    } else {
      return stream_.template combine<config.parts_at_a_time()>(parts, begin, end - 1, lds().arrived);
    }
  }

  const A* a_;
  const void* a_scale_;
  [[no_unique_address]] Either<(config.a.norm_parts > 0), RowNorm, NoNorm> norm_;
  u32 rows_, block_, finished_ = 0; // tiles; with sums over experts, those of the same columns
  Tiles tiles_;
  StreamK<config.shared(), Runs, !config.by_expert()> stream_;
  char* workspace_;
};

} // namespace kiln
