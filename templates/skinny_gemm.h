// SkinnyGemm<config>: which steps a workgroup takes, and how sums meet.
#pragma once
#include "skinny_gemm/near.h"
#include "skinny_gemm/producers.h"
#include "skinny_gemm/ring.h"
#include "skinny_gemm/staging.h"
#include "skinny_gemm/tile_parts.h"

namespace kiln {

template <SkinnyGemmConfig config, class A, class B> class SkinnyGemm {
  static_assert(why_invalid(config) == nullptr, "invalid SkinnyGemmConfig");
  static_assert(config.a_bits == gemm_bits<A> && config.b_bits == gemm_bits<B>);
  using Parts = TileParts<config>;
  using Part = typename Parts::Part;
  static constexpr u32 tile_steps = config.steps_per_tile();

public:
  // `rows` of A exist, from 1 to config.rows. `workspace` has config.workspace_bytes(), zero before the first launch; every
  // launch leaves zero what has to be. `a_scale`, with scales of blocks: [row][group], or [group][row] with a_scales_by_group; with
  // norm_parts the weight of each column, of A's type.
  // `block`: of config.workgroups, whoever works on them.
  KILN_MEMBER SkinnyGemm(const A* a, u32 rows, void* workspace, const void* a_scale = nullptr, u32 block = platform::block_x())
      : a_(a), a_scale_(a_scale), rows_(rows), workspace_(static_cast<char*>(workspace)) {
    group_ = workgroup_in_order<config.workgroups>(block);
  }

  // With norm_parts, before run.
  KILN_MEMBER void norm_by(RowNorm norm) {
    if constexpr (config.norm_parts > 0) norm_ = norm;
  }

  // Multiplies with `b...`, one matrix for each product (a pointer, or a struct of skinny_gemm/scales.h), and calls
  // epilogue(TileChunk, one InRegisters<Part> a product) for every chunk of C that this workgroup finishes.
  // `near`: operands of the epilogue that are asked for before.
  template <int N, class Epilogue, class... Bs> KILN_MEMBER void run(Near<N> near, Epilogue epilogue, Bs... b) { run_with(near, epilogue, b...); }
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) { run_with(NothingNear{}, epilogue, b...); }

  // With rows_at_end: the sums of a product, [rows][n] in the workspace, and whether this workgroup finished the last tile. It has all
  // sums then, and every other workgroup may leave.
  KILN_MEMBER f32* sums(int product) const {
    return reinterpret_cast<f32*>(workspace_ + config.counter_bytes() + config.partial_bytes() + product * config.sums_bytes());
  }
  KILN_MEMBER bool is_last() {
    if (finished_ == 0) return false;
    if constexpr (config.tiles() == 1) { // by this workgroup alone
      platform::release_to_workgroup();
      platform::barrier();
      platform::acquire_from_workgroup();
    } else {
      return arrives_last(reinterpret_cast<u32*>(workspace_) + config.tiles(), config.tiles() - finished_, lds().arrived, finished_);
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
      if constexpr (config.norm_parts > 0) steps.take_factors(NormOfRows<config>::find(NormOfRows<config>::ask(norm_, rows_), norm_, rows_));
      else steps.take_largest(LargestOfRows<config>::find(a_, rows_));
    }
    const typename Steps::RowsOfA* const a = rows_for<Steps>();
    if constexpr (config.tells()) generation_ = generations()[group_] + 1;
    u32 left = first_step(group_ + 1) - first_step(group_);
    const u32 tile = first_step(group_) / tile_steps, at = first_step(group_) - tile * tile_steps;
    GemmSegment segment{tile, at, smaller(tile_steps - at, left)};
    u32 before = begins(segment); // workgroups that began with this tile before this one
    Either<config.staged, Staging<config, A, B>, NoStaging> staging(RowsToStage<config, A>{a_, rows_, a_scale_, norm_});
    staging.begin(segment);
    steps.begin(segment, a, b...);
    staging.finish(segment);
    for (bool again = false;; again = true) {
      typename NearBy::Words words;
      steps.accumulate([&] KILN_LAMBDA { words = near.ask(segment.tile); });
      if constexpr (!config.has_producers()) words = platform::computed_here(words);
      if constexpr (config.tells()) before = platform::computed_here(before); // no wait for it behind the loads of the next segment
      left -= segment.count;
      const GemmSegment next{segment.tile + 1, 0, smaller(tile_steps, left)};
      u32 before_next = 0;
      if (config.crosses() && left) {
        before_next = begins(next);
        staging.begin_next(segment, next);
        steps.begin(next, a, b...); // in flight while this tile is finished
      }
      if (config.crosses() && again) platform::barrier(); // LDS is read no more
      if constexpr (Steps::sums) {
        platform::settle_sums<config.edge()>();
        steps.to_lds(lds().tiles[index * config.planes_per_wave()]);
      }
      if constexpr (config.tells()) {
        if (platform::thread_id() == 0) lds().arrived = before;
        generation_ = platform::known_here(platform::uniform(generation_));
      }
      platform::barrier();
      if constexpr (config.tells())
        if (platform::thread_id() == 0) generations()[group_] = generation_; // every wave has read it
      finish(segment, epilogue);
      before = before_next;
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
  // Steps of workgroup g: floor(g * steps / workgroups) up to the next one's; and back. 32 bits where they do.
  using Wide = Either<(config.steps() + 1) * (config.workgroups + 1) < 1ll << 32, u32, u64>;
  KILN_DEVICE u32 first_step(u32 group) { return static_cast<u32>(Wide(group) * Wide(config.steps()) / Wide(config.workgroups)); }
  KILN_DEVICE u32 group_of(u32 step) {
    return static_cast<u32>(((Wide(step) + 1) * Wide(config.workgroups) - 1) / Wide(config.steps()));
  }

  // The waves' sums meet in LDS, those of several workgroups in the workspace.
  template <class Epilogue> KILN_MEMBER void finish(const GemmSegment& segment, Epilogue& epilogue) {
    Parts parts;
    parts.sum_waves();
    if constexpr (config.norm_parts > 0) {
      const f32 scale = *norm_.scale;
      Parts::each([&](int c, int p) KILN_LAMBDA { parts.of[c][p] *= Part(scale); });
    } else if constexpr (config.quantises) {
      const f32* const largest = LargestOfRows<config>::in_lds();
      Parts::each([&](int c, int p) KILN_LAMBDA { parts.of[c][p] *= Part(largest[Parts::row(c)] / Fp8<B>::max); });
    }
    if (config.splits() && segment.count != tile_steps) {
      if (!meet(segment, parts)) return;
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

  // Counts this workgroup among those that began with a tile, if it has a part of it. The last one to begin sums the parts: all others
  // run by then, so that it may wait for them. They themselves wait for parts of tiles before this one only, never in a circle. The count
  // is under way while the workgroup multiplies.
  KILN_MEMBER u32 begins(const GemmSegment& segment) const {
    u32 before = 0;
    if constexpr (config.tells())
      if (segment.count != tile_steps && platform::thread_id() == 0) before = platform::count_up_ahead(counter_of(segment.tile));
    return before;
  }

  // Tells this workgroup's part of a tile, or adds it to the tile's in the workspace. The one that sums all parts, in the order of k, or
  // takes the sum and leaves zeros for the next launch, returns true.
  KILN_MEMBER bool meet(const GemmSegment& segment, Parts& parts) {
    const u32 first = group_of(segment.tile * tile_steps), last = group_of(segment.tile * tile_steps + tile_steps - 1);
    u32* const counter = counter_of(segment.tile);
    if constexpr (config.atomics) {
      f32* const sum = reinterpret_cast<f32*>(workspace_ + config.counter_bytes()) + static_cast<u64>(segment.tile) * config.partial_floats();
      Parts::each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
        for (int i = 0; i < config.vec; ++i) platform::add_for_device(sum + Parts::offset(c, p) + i, parts.of[c][p][i]);
      });
      if (!arrives_last(counter, last - first, lds().arrived)) return false;
      Parts::each([&](int c, int p) KILN_LAMBDA { parts.of[c][p] = *reinterpret_cast<const Part*>(sum + Parts::offset(c, p)); });
      // Waits here: lanes without a part of the tile would otherwise wait in the loop of the next segment.
      platform::await_loads<0>();
      Parts::each([&](int c, int p) KILN_LAMBDA { *reinterpret_cast<Part*>(sum + Parts::offset(c, p)) = Part(0); });
      return true;
    } else {
      if (platform::uniform(lds().arrived) != last - first) return parts.tell(place_of(group_, segment.tile), generation_), false;
      if (platform::thread_id() == 0) *counter = 0;
      parts.hear(first, last, group_, generation_, [&](u32 group) KILN_LAMBDA { return place_of(group, segment.tile); });
      return true;
    }
  }
  KILN_MEMBER u32* counter_of(u32 tile) const { return reinterpret_cast<u32*>(workspace_) + tile; }
  KILN_MEMBER u32* generations() const { return counter_of(config.first_generation()); }
  // A workgroup's first part has its first place; a part of the tile that it ends in, when that is another, its second.
  KILN_MEMBER u64* place_of(u32 group, u32 tile) const {
    const u32 place = 2 * group + (first_step(group) < tile * tile_steps);
    return reinterpret_cast<u64*>(workspace_ + config.counter_bytes()) + static_cast<u64>(place) * config.partial_floats();
  }

  const A* a_;
  const void* a_scale_;
  [[no_unique_address]] Either<(config.norm_parts > 0), RowNorm, NoNorm> norm_;
  u32 rows_, group_, finished_ = 0; // tiles
  u32 generation_ = 0;              // of this launch
  char* workspace_;
};

} // namespace kiln
