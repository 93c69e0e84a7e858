// SkinnyGemm<config>: which steps a workgroup takes, and how sums meet.
#pragma once
#include "skinny_gemm/largest_of_rows.h"
#include "skinny_gemm/producers.h"
#include "skinny_gemm/ring.h"
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
  // launch leaves zero what has to be. `a_scale`, with scales of blocks: [row][group].
  KILN_MEMBER SkinnyGemm(const A* a, u32 rows, void* workspace, const void* a_scale = nullptr)
      : a_(a), a_scale_(a_scale), rows_(rows), workspace_(static_cast<char*>(workspace)) {
    group_ = workgroup_in_order<config.workgroups>();
  }

  // Multiplies with `b...`, one matrix for each product (a pointer, or a struct of skinny_gemm/scales.h), and calls
  // epilogue(TileChunk, one InRegisters<Part> a product) for every chunk of C that this workgroup finishes.
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) {
    if constexpr (config.has_producers()) {
      // Each kind of wave has its own copy of the rest. If their paths met, each would need the registers of all.
      GemmSlots<config, A, B>::clear();
      const u32 wave = platform::uniform(platform::thread_id() / wave_size);
      constexpr u32 readers = config.summing_waves(), of_b = config.b_producers;
      if (wave < readers) run_as<GemmReader<config, A, B>>(wave, epilogue, b...);
      else if (wave < readers + of_b) run_as<GemmLoader<config, A, B, true>>(wave - readers, epilogue, b...);
      else run_as<GemmLoader<config, A, B, false>>(wave - readers - of_b, epilogue, b...);
    } else {
      run_as<GemmRing<config, A, B>>(platform::uniform(platform::thread_id() / wave_size), epilogue, b...);
    }
  }

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

  // All segments, `index` counts the waves that work as Steps.
  template <class Steps, class Epilogue, class... Bs> KILN_MEMBER void run_as(u32 index, Epilogue& epilogue, Bs... b) {
    Steps steps;
    steps.start(rows_, index, a_scale_);
    if constexpr (config.quantises) steps.take_largest(LargestOfRows<config>::find(a_, rows_));
    u32 left = first_step(group_ + 1) - first_step(group_);
    const u32 tile = first_step(group_) / tile_steps, at = first_step(group_) - tile * tile_steps;
    GemmSegment segment{tile, at, smaller(tile_steps - at, left)};
    steps.begin(segment, a_, b...);
    for (bool again = false;; again = true) {
      steps.accumulate();
      left -= segment.count;
      const GemmSegment next{segment.tile + 1, 0, smaller(tile_steps, left)};
      if (config.crosses() && left) steps.begin(next, a_, b...); // in flight while this tile is finished
      if (config.crosses() && again) platform::barrier();        // LDS is read no more
      if constexpr (Steps::sums) {
        platform::settle_sums<config.edge()>();
        steps.to_lds(lds().tiles[index * config.planes_per_wave()]);
      }
      platform::barrier();
      finish(segment, epilogue);
      if (!config.crosses() || !left) return;
      segment = next;
    }
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
    if constexpr (config.quantises) {
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

  // Leaves this workgroup's part of a tile in the workspace, or adds it to the tile's there. The last one to arrive sums all
  // parts, in the order of k, or takes the sum and leaves zeros for the next launch, and returns true.
  KILN_MEMBER bool meet(const GemmSegment& segment, Parts& parts) {
    const u32 first = group_of(segment.tile * tile_steps), last = group_of(segment.tile * tile_steps + tile_steps - 1);
    u32* const counter = reinterpret_cast<u32*>(workspace_) + segment.tile;
    f32* const mine = place_of(group_, segment.tile);
    if constexpr (config.atomics) {
      Parts::each([&](int c, int p) KILN_LAMBDA {
#pragma unroll
        for (int i = 0; i < config.vec; ++i) platform::add_for_device(mine + Parts::offset(c, p) + i, parts.of[c][p][i]);
      });
    } else {
      parts.store(mine);
    }
    if (!arrives_last(counter, last - first, lds().arrived)) return false;
    if constexpr (config.atomics) {
      Parts::each([&](int c, int p) KILN_LAMBDA { parts.of[c][p] = *reinterpret_cast<const Part*>(mine + Parts::offset(c, p)); });
      // Waits here: lanes without a part of the tile would otherwise wait in the loop of the next segment.
      platform::await_loads<0>();
      Parts::each([&](int c, int p) KILN_LAMBDA { *reinterpret_cast<Part*>(mine + Parts::offset(c, p)) = Part(0); });
      return true;
    }
    parts.clear();
#pragma unroll 4
    for (u32 group = first; group <= last; ++group) parts.add(place_of(group, segment.tile));
    return true;
  }
  // A workgroup's first part has its first place; a part of the tile that it ends in, when that is another, its second. With
  // atomics a tile has one.
  KILN_MEMBER f32* place_of(u32 group, u32 tile) const {
    const u32 place = config.atomics ? tile : 2 * group + (first_step(group) < tile * tile_steps);
    return reinterpret_cast<f32*>(workspace_ + config.counter_bytes()) + static_cast<u64>(place) * config.partial_floats();
  }

  const A* a_;
  const void* a_scale_;
  u32 rows_, group_, finished_ = 0; // tiles
  char* workspace_;
};

} // namespace kiln
