// SkinnyGemm<config>: which steps a workgroup takes, and how sums meet.
#pragma once
#include "common/arrival.h"
#include "gemm/stream_k.h"
#include "gemm/near.h"
#include "gemm/producers.h"
#include "gemm/ring.h"
#include "gemm/staging.h"
#include "gemm/tile_parts.h"

namespace kiln {

template <SkinnyGemmConfig config, class A, class B> class SkinnyGemm {
  static_assert(why_invalid(config) == nullptr, "invalid SkinnyGemmConfig");
  static_assert(config.a.bits == gemm_bits<A> && config.b.bits == gemm_bits<B>);
  using Parts = TileParts<config>;
  using Part = typename Parts::Part;
  using Runs = StepRuns<config.workgroups, config.steps()>;
  static constexpr u32 tile_steps = config.steps_per_tile();

public:
  // `rows` of A exist, from 1 to config.rows. `workspace` has config.workspace_bytes(), zero before the first launch; every
  // launch leaves zero what has to be. `a_scale`, with scales of blocks: [row][group], or [group][row] with a_scales_by_group; with
  // norm_parts the weight of each column, of A's type.
  // `block`: of config.workgroups, whoever works on them.
  KILN_MEMBER SkinnyGemm(const A* a, u32 rows, void* workspace, const void* a_scale = nullptr, u32 block = platform::block_x())
      : a_(a), a_scale_(a_scale), rows_(rows), stream_(workspace, workgroup_in_order<config.workgroups>(block), Runs{config.steps()}),
        workspace_(static_cast<char*>(workspace)) {}

  // With norm_parts, before run.
  KILN_MEMBER void norm_by(RowNorm norm) {
    if constexpr (config.a.norm_parts > 0) norm_ = norm;
  }

  // Multiplies with `b...`, one matrix for each product (a pointer, or a struct of gemm/operands/), and calls
  // epilogue(TileChunk, one InRegisters<Part> a product) for every chunk of C that this workgroup finishes.
  // `near`: operands of the epilogue that are asked for before.
  template <int N, class Epilogue, class... Bs> KILN_MEMBER void run(Near<N> near, Epilogue epilogue, Bs... b) { run_with(near, epilogue, b...); }
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) { run_with(NothingNear{}, epilogue, b...); }

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
  static KILN_MEMBER typename Parts::Lds& lds() { return Parts::lds(); }

  template <class NearBy, class Epilogue, class... Bs> KILN_MEMBER void run_with(NearBy near, Epilogue epilogue, Bs... b) {
    if constexpr (config.has_producers()) {
      // Each kind of wave has its own copy of the rest. If their paths met, each would need the registers of all.
      GemmSlots<config, A, B>::clear();
      const u32 wave = platform::uniform(platform::thread_id() / wave_size);
      constexpr u32 readers = config.summing_waves(), of_b = config.b_producers;
      if (wave < readers) run_as<GemmReader<config, A, B>>(wave, near, epilogue, b...);
      else if (wave < readers + of_b) run_as<GemmLoader<config, A, B, true>>(wave - readers, near, epilogue, b...);
      else run_as<GemmLoader<config, A, B, false>>(wave - readers - of_b, near, epilogue, b...);
    } else {
      run_as<GemmRing<config, Either<config.staged, B, A>, B>>(platform::uniform(platform::thread_id() / wave_size), near, epilogue, b...);
    }
  }

  // All segments, `index` counts the waves that work as Steps.
  template <class Steps, class NearBy, class Epilogue, class... Bs>
  KILN_MEMBER void run_as(u32 index, const NearBy& near, Epilogue& epilogue, Bs... b) {
    Steps steps;
    steps.start(rows_, index, a_scale_);
    if constexpr (config.quantises_steps()) {
      if constexpr (config.a.norm_parts > 0) steps.take_factors(NormOfRows<config>::find(NormOfRows<config>::ask(norm_, rows_), norm_, rows_));
      else steps.take_largest(LargestOfRows<config>::find(a_, rows_));
    }
    const typename Steps::RowsOfA* const a = rows_for<Steps>();
    if constexpr (config.publishes()) stream_.load_generation();
    u32 left = stream_.end_step() - stream_.first_step();
    const u32 tile = stream_.first_step() / tile_steps, at = stream_.first_step() - tile * tile_steps;
    GemmSegment segment{tile, at, smaller(tile_steps - at, left)};
    u32 arrived = 0;
    if constexpr (!config.crosses()) arrived = register_arrival(segment);
    Either<config.staged, Staging<config, A, B>, NoStaging> staging(RowsToStage<config, A>{a_, rows_, a_scale_, norm_});
    staging.begin(segment);
    steps.begin(segment, a, b...);
    staging.finish(segment);
    for (bool again = false;; again = true) {
      typename NearBy::Words words;
      steps.accumulate([&] KILN_LAMBDA {
        words = near.ask(segment.tile);
        if constexpr (config.crosses()) arrived = register_arrival(segment);
      });
      if constexpr (!config.has_producers()) words = platform::computed_here(words);
      if constexpr (config.publishes()) arrived = platform::computed_here(arrived); // no wait for it behind the loads of the next segment
      left -= segment.count;
      const GemmSegment next{segment.tile + 1, 0, smaller(tile_steps, left)};
      if (config.crosses() && left) {
        staging.begin_next(segment, next);
        steps.begin(next, a, b...); // in flight while this tile is finished
      }
      if (config.crosses() && again) platform::barrier(); // LDS is read no more
      if constexpr (Steps::sums) {
        platform::settle_sums<config.edge()>();
        steps.to_lds(lds().tiles[index * config.planes_per_wave()]);
      }
      if constexpr (config.publishes()) {
        if (platform::thread_id() == 0) lds().arrived = arrived;
        stream_.pin_generation();
      }
      platform::barrier();
      if constexpr (config.publishes()) stream_.store_generation();
      finish(segment, epilogue);
      if (!config.crosses() || !left) return;
      staging.finish_next(segment, next);
      segment = next;
    }
  }

  // What the steps load A from: nothing, if it is staged.
  template <class Steps> KILN_MEMBER const typename Steps::RowsOfA* rows_for() const {
    if constexpr (config.staged) return nullptr;
    else return a_;
  }
  // The waves' sums meet in LDS, those of several workgroups in the workspace.
  template <class Epilogue> KILN_MEMBER void finish(const GemmSegment& segment, Epilogue& epilogue) {
    Parts parts;
    parts.sum_waves();
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
    for (int c = 0; c < config.chunks(); ++c) call(epilogue, segment.tile, c, parts.of[c]);
    if constexpr (config.rows_at_end) ++finished_;
  }

  template <class Epilogue> KILN_MEMBER void call(Epilogue& epilogue, u32 tile, int c, const Part (&parts)[config.products]) {
    const TileChunk<config.n, config.vec> chunk(Parts::row(c), tile * config.tile_n + Parts::column(c), rows_);
    if constexpr (config.products == 1) epilogue(chunk, InRegisters<Part>{parts[0]});
    else epilogue(chunk, InRegisters<Part>{parts[0]}, InRegisters<Part>{parts[1]});
  }

  // Counts this workgroup for a tile of which it has a part.
  KILN_MEMBER u32 register_arrival(const GemmSegment& segment) const {
    if constexpr (config.publishes())
      if (segment.count != tile_steps) return stream_.register_arrival(segment.tile * tile_steps);
    return 0;
  }

  // Publishes this workgroup's part of a tile, or adds it to the tile's in the workspace. The one that has the sum of all parts then, in the
  // order of k, or takes the sum and leaves zeros for the next launch, returns true.
  KILN_MEMBER bool combine(const GemmSegment& segment, Parts& parts) {
    const u32 begin = segment.tile * tile_steps, end = begin + tile_steps;
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
  u32 rows_, finished_ = 0; // tiles
  StreamK<config.shared(), Runs, true> stream_;
  char* workspace_;
};

} // namespace kiln
