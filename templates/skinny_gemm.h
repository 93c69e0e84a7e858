// SkinnyGemm<config>: which steps a workgroup takes, the ring that keeps its loads in flight, and how sums meet.
#pragma once
#include "gemm_sums.h"
#include "gemm_tile.h"

namespace kiln {

// Consecutive steps of one tile.
struct GemmSegment {
  u32 tile, first, count;
};

template <SkinnyGemmConfig config, class A, class B> class SkinnyGemm {
  static_assert(why_invalid(config) == nullptr, "invalid SkinnyGemmConfig");
  static_assert(config.a_bits == 8 * sizeof(A) && config.b_bits == (__is_same(B, u4x2) ? 4 : 8 * sizeof(B)));
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  using Part = Vec<f32, config.vec>;
  static constexpr u32 tile_steps = config.steps_per_tile();
  // Whether some wave may have another number of steps than whole turns of the ring.
  static constexpr bool partial_turns = config.crosses() || config.steps() / config.workgroups % (config.waves * config.ring) != 0;

public:
  // `rows` of A exist, from 1 to config.rows. `workspace` has config.workspace_bytes(), zero before the first launch; every
  // launch leaves zero what has to be. `a_scale`, with scales of blocks: [row][group].
  KILN_MEMBER SkinnyGemm(const A* a, u32 rows, void* workspace, const f32* a_scale = nullptr)
      : a_(a), rows_(rows), workspace_(static_cast<char*>(workspace)) {
    operands_.start(rows, a_scale);
    wave_ = platform::uniform(platform::thread_id() / 64);
    group_ = group_in_order();
  }

  // Multiplies with `b...`, one matrix for each product (a pointer, or a struct of gemm_scales.h), and calls epilogue(TileChunk, one InRegisters<Part> a product) for
  // every chunk of C that this workgroup finishes.
  template <class Epilogue, class... Bs> KILN_MEMBER void run(Epilogue epilogue, Bs... b) {
    u32 left = first_step(group_ + 1) - first_step(group_);
    const u32 tile = first_step(group_) / tile_steps, at = first_step(group_) - tile * tile_steps;
    GemmSegment segment{tile, at, least(tile_steps - at, left)};
    begin(segment, b...);
    for (bool again = false;; again = true) {
      sums_.clear();
      accumulate();
      left -= segment.count;
      const GemmSegment next{segment.tile + 1, 0, least(tile_steps, left)};
      if (config.crosses() && left) begin(next, b...); // in flight while this tile is finished
      finish(segment, again, epilogue);
      if (!config.crosses() || !left) return;
      segment = next;
    }
  }

private:
  KILN_DEVICE u32 least(u32 a, u32 b) { return a < b ? a : b; }
  // Workgroups go to the XCDs in turn. Renumbered so that one XCD has neighbouring tiles, whose A its L2 then shares.
  KILN_DEVICE u32 group_in_order() {
    constexpr u32 each = config.workgroups / xcds, extra = config.workgroups % xcds;
    const u32 xcd = platform::block_x() % xcds, nth = platform::block_x() / xcds;
    return xcd * each + least(xcd, extra) + nth;
  }
  // Steps of workgroup g: floor(g * steps / workgroups) up to the next one's; and back. 32 bits where they do.
  using Wide = Either<(config.steps() + 1) * (config.workgroups + 1) < 1ll << 32, u32, u64>;
  KILN_DEVICE u32 first_step(u32 group) { return static_cast<u32>(Wide(group) * Wide(config.steps()) / Wide(config.workgroups)); }
  KILN_DEVICE u32 group_of(u32 step) {
    return static_cast<u32>(((Wide(step) + 1) * Wide(config.workgroups) - 1) / Wide(config.steps()));
  }

  // This wave's steps of a segment, whole turns of the ring but for the last wave's, and the loads of the first turn.
  template <class... Bs> KILN_MEMBER void begin(const GemmSegment& segment, Bs... b) {
    const u32 turns = (segment.count + config.ring - 1) / config.ring;
    const u32 first = least(turns * wave_ / config.waves * config.ring, segment.count);
    count_ = least(turns * (wave_ + 1) / config.waves * config.ring, segment.count) - first;
    // A wave without steps reads the segment's last one, and multiplies nothing.
    operands_.move_to(segment.tile, segment.first + (partial_turns ? least(first, segment.count - 1) : first), a_, b...);
    left_in_tile_ = tile_steps - segment.first - first;
    platform::schedule_barrier();
    if (!partial_turns || count_ >= config.ring) {
      load_turn(0);
    } else {
      load_turn(0, count_ ? count_ - 1 : 0);
    }
  }
  KILN_MEMBER void load_turn(int first) {
#pragma unroll
    for (int i = 0; i < config.ring; ++i) {
      ring_[i].load(operands_, first + i);
      platform::schedule_barrier();
    }
  }
  KILN_MEMBER void load_turn(int first, u32 last) {
#pragma unroll
    for (int i = 0; i < config.ring; ++i) {
      ring_[i].load(operands_, least(first + i, last));
      platform::schedule_barrier();
    }
  }

  // A slot is multiplied first and reloaded then, with barriers for the scheduler between: this alone keeps the ring in
  // flight. Where the last turn is not whole, the loads in the place of missing steps read the last step again, from a cache.
  KILN_MEMBER void accumulate() {
    u32 left = count_;
#pragma nounroll
    for (; left >= 2 * config.ring; left -= config.ring) {
#pragma unroll
      for (int i = 0; i < config.ring; ++i) {
        add(i, i);
        platform::schedule_barrier();
        ring_[i].load(operands_, config.ring + i);
        platform::schedule_barrier();
      }
      next_turn();
    }
    if constexpr (partial_turns) {
      if (left > config.ring) {
#pragma unroll
        for (int i = 0; i < config.ring; ++i) {
          add(i, i);
          platform::schedule_barrier();
          ring_[i].load(operands_, least(config.ring + i, left - 1));
          platform::schedule_barrier();
        }
        next_turn();
        left -= config.ring;
      }
    }
    if (!partial_turns || left == config.ring) {
#pragma unroll
      for (int i = 0; i < config.ring; ++i) add(i, i);
    } else {
#pragma unroll
      for (int i = 0; i < config.ring - 1; ++i)
        if (static_cast<u32>(i) < left) add(i, i);
    }
  }
  KILN_MEMBER void next_turn() {
    operands_.advance(config.ring);
    left_in_tile_ -= config.ring;
  }
  // `step` counts from the start of this turn.
  KILN_MEMBER void add(int slot, int step) {
    if constexpr (config.k_tail())
      if (left_in_tile_ == static_cast<u32>(step) + 1) ring_[slot].cut(operands_, step);
    sums_.add(ring_[slot]);
  }

  // The waves' sums meet in LDS, those of several workgroups in the workspace.
  template <class Epilogue> KILN_MEMBER void finish(const GemmSegment& segment, bool again, Epilogue& epilogue) {
    static __shared__ f32 tiles[config.planes()][config.rows * config.lds_row()];
    static __shared__ u32 arrived;
    if (config.crosses() && again) platform::barrier(); // LDS is read no more
    sums_.to_lds(tiles[wave_ * config.planes_per_wave()]);
    platform::barrier();
    Part parts[config.chunks()][config.products];
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p) parts[c][p] = sum_of_waves(tiles, c, p);
    if (config.splits() && segment.count != tile_steps) {
      if (!meet(segment, parts, arrived)) return;
    }
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c) call(epilogue, segment.tile, c, parts[c]);
  }
  KILN_DEVICE u32 chunk_row(int c) { return (c * config.threads() + platform::thread_id()) / config.chunks_per_row(); }
  KILN_DEVICE u32 chunk_column(int c) { return (c * config.threads() + platform::thread_id()) % config.chunks_per_row() * config.vec; }

  KILN_MEMBER Part sum_of_waves(const f32 (&tiles)[config.planes()][config.rows * config.lds_row()], int c, int p) const {
    u32 row = chunk_row(c);
    if (config.rows * config.chunks_per_row() % config.threads()) row = least(row, config.rows - 1);
    const u32 at = row * config.lds_row() + p * config.tile_n + chunk_column(c);
    Part sum = *reinterpret_cast<const Part*>(&tiles[0][at]);
#pragma unroll
    for (int w = 1; w < config.planes(); ++w) sum += *reinterpret_cast<const Part*>(&tiles[w][at]);
    return sum;
  }

  template <class Epilogue> KILN_MEMBER void call(Epilogue& epilogue, u32 tile, int c, const Part (&parts)[config.products]) {
    const TileChunk<config> chunk(chunk_row(c), tile * config.tile_n + chunk_column(c), rows_);
    if constexpr (config.products == 1) epilogue(chunk, InRegisters<Part>{parts[0]});
    else epilogue(chunk, InRegisters<Part>{parts[0]}, InRegisters<Part>{parts[1]});
  }

  // Leaves this workgroup's part of a tile in the workspace, or adds it to the tile's there. The last one to arrive sums all
  // parts, in the order of k, or takes the sum and leaves zeros for the next launch, and returns true. Formally: release before the counter, acquire after it, both at agent scope, as L2s of XCDs differ.
  KILN_MEMBER bool meet(const GemmSegment& segment, Part (&parts)[config.chunks()][config.products], u32& arrived) {
    const u32 first = group_of(segment.tile * tile_steps), last = group_of(segment.tile * tile_steps + tile_steps - 1);
    u32* const counter = reinterpret_cast<u32*>(workspace_) + segment.tile;
    f32* const mine = place_of(group_, segment.tile);
    each_part([&](int c, int p) KILN_LAMBDA {
      if constexpr (config.atomics) {
#pragma unroll
        for (int i = 0; i < config.vec; ++i) platform::add_for_device(mine + part_offset(c, p) + i, parts[c][p][i]);
      } else {
        *reinterpret_cast<Part*>(mine + part_offset(c, p)) = parts[c][p];
      }
    });
    platform::release_to_device();
    platform::barrier();
    if (platform::thread_id() == 0) arrived = platform::count_up(counter);
    platform::barrier();
    if (platform::uniform(arrived) != last - first) return false;
    platform::acquire_from_device();
    if (platform::thread_id() == 0) *counter = 0;
    if constexpr (config.atomics) {
      each_part([&](int c, int p) KILN_LAMBDA {
        Part* const sum = reinterpret_cast<Part*>(mine + part_offset(c, p));
        parts[c][p] = *sum;
        *sum = Part(0);
      });
      return true;
    }
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p) parts[c][p] = Part(0);
#pragma unroll 4
    for (u32 group = first; group <= last; ++group) {
      const f32* const other = place_of(group, segment.tile);
      each_part([&](int c, int p) KILN_LAMBDA { parts[c][p] += *reinterpret_cast<const Part*>(other + part_offset(c, p)); });
    }
    return true;
  }
  // f(c, p) of every part that this lane has.
  template <class F> KILN_MEMBER void each_part(F f) const {
#pragma unroll
    for (int c = 0; c < config.chunks(); ++c)
#pragma unroll
      for (int p = 0; p < config.products; ++p)
        if (in_tile(c)) f(c, p);
  }
  KILN_MEMBER bool in_tile(int c) const {
    return config.rows * config.chunks_per_row() % config.threads() == 0 || chunk_row(c) < config.rows;
  }
  KILN_DEVICE u32 part_offset(int c, int p) {
    return ((c * config.products + p) * config.threads() + platform::thread_id()) * config.vec;
  }
  // A workgroup's first part has its first place; a part of the tile that it ends in, when that is another, its second. With
  // atomics a tile has one.
  KILN_MEMBER f32* place_of(u32 group, u32 tile) const {
    const u32 place = config.atomics ? tile : 2 * group + (first_step(group) < tile * tile_steps);
    return reinterpret_cast<f32*>(workspace_ + config.counter_bytes()) + static_cast<u64>(place) * config.partial_floats();
  }

  Operands operands_;
  Slot ring_[config.ring];
  GemmSums<config, A, B, config.method> sums_;
  const A* a_;
  u32 rows_, wave_, group_;
  u32 count_ = 0;        // steps of this wave in the segment
  u32 left_in_tile_ = 0; // steps from the current turn's first one to the end of k
  char* workspace_;
};

} // namespace kiln
