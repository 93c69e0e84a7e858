// GemmRing: every wave loads its own steps, keeps a ring of them in flight in registers, and multiplies them.
#pragma once
#include "gemm/dot_sums.h"
#include "gemm/matrix_sums.h"
#include "gemm/segment.h"
#include "gemm/sparse_sums.h"
#include "gemm/operands/turn_scales.h"

namespace kiln {

template <GemmConfig config, class A, class B> class GemmRing {
  using Operands = GemmOperands<config, A, B>;
  using Slot = GemmSlot<config, A, B>;
  // Whether some wave may have another number of steps than whole turns of the ring.
  static constexpr bool partial_turns = config.crosses() || config.steps() / config.workgroups % (config.waves * config.stages) != 0;

public:
  static constexpr bool sums = true;

  KILN_MEMBER void start(u32 rows, u32 wave, const void* a_scale) {
    take_rows(RowsInOrder{rows}, a_scale);
    wave_ = wave;
  }
  // The rows of A of the segments that begin from now on.
  template <class RowOf> KILN_MEMBER void take_rows(RowOf row_of, const void* a_scale) { operands_.start(row_of, a_scale); }
  KILN_MEMBER void work_as(u32 wave) { wave_ = wave; }

  // This wave's steps of a segment, whole turns of the ring but for the last wave's (any number, if the order must not depend on the ring),
  // and the loads of the first turn.
  template <class... Bs> KILN_MEMBER void begin(const GemmSegment& segment, const A* a, Bs... b) {
    constexpr u32 unit = config.wave_unit();
    const u32 units = (segment.count + unit - 1) / unit;
    const u32 first = smaller(units * wave_ / config.waves * unit, segment.count);
    count_ = smaller(units * (wave_ + 1) / config.waves * unit, segment.count) - first;
    // A wave without steps reads the segment's last one, and multiplies nothing.
    if constexpr (config.staged) operands_.staged = (partial_turns ? smaller(first, segment.count - 1) : first) * config.step_bytes();
    operands_.move_to(segment.tile, segment.first + (partial_turns ? smaller(first, segment.count - 1) : first), a, b...);
    left_in_tile_ = config.steps_per_tile() - segment.first - first;
    platform::schedule_barrier();
    if constexpr (config.wide_scales()) {
      scales_.load(operands_.scales, 0);
      platform::schedule_barrier();
    }
    // No branch for whole turns: behind it LLVM waits for all loads where one of those in front is needed, and moves loads of scales behind it.
    const u32 last = count_ ? count_ - 1 : 0;
#pragma unroll
    for (int i = 0; i < config.stages; ++i) {
      ring_[i].load(operands_, partial_turns ? smaller(i, last) : i);
      platform::schedule_barrier();
    }
  }

  // Multiplies a slot first and then reloads it, with barriers for LLVM's scheduler between: no other order keeps the whole ring in
  // flight. If the last turn is not whole, loads in place of the missing steps read the last step again, from a cache.
  // `at_the_end` is called when all loads of the segment are under way.
  struct Nothing {
    KILN_MEMBER void operator()() const {}
  };
  template <class AtTheEnd = Nothing> KILN_MEMBER void accumulate(AtTheEnd at_the_end = {}) {
    sums_.clear();
    u32 left = count_;
#pragma nounroll
    for (; left >= 2 * config.stages; left -= config.stages) {
      take_scales(true);
#pragma unroll
      for (int i = 0; i < config.stages; ++i) {
        add(i);
        platform::schedule_barrier();
        ring_[i].load(operands_, config.stages + i);
        platform::schedule_barrier();
        sums_.settle();
      }
      next_turn();
    }
    if constexpr (partial_turns) {
      if (left > config.stages) {
        take_scales(true);
#pragma unroll
        for (int i = 0; i < config.stages; ++i) {
          add(i);
          platform::schedule_barrier();
          ring_[i].load(operands_, smaller(config.stages + i, left - 1));
          platform::schedule_barrier();
          sums_.settle();
        }
        next_turn();
        left -= config.stages;
      }
    }
    at_the_end();
    platform::schedule_barrier();
    take_scales(false);
    if (!partial_turns || left == config.stages) {
#pragma unroll
      for (int i = 0; i < config.stages; ++i) add_last(i, i == config.stages - 1);
    } else {
#pragma unroll
      for (int i = 0; i < config.stages - 1; ++i)
        if (static_cast<u32>(i) < left) add_last(i, true);
    }
    if constexpr (config.crosses() && Operands::whole_lines)
#pragma unroll
      for (Slot& slot : ring_) slot.forget();
  }

  KILN_MEMBER void to_lds(f32* tile, int round) const { sums_.to_lds(tile, round); }
  // With config.a.quantises: the largest magnitude of each row of A.
  KILN_MEMBER void take_largest(const f32* largest) { sums_.take_largest(largest); }
  // With config.a.norm_parts: what each row of A is multiplied by.
  KILN_MEMBER void take_factors(const f32* factors) { sums_.take_factors(factors); }

private:
  KILN_MEMBER void next_turn() {
    operands_.advance(config.stages);
    left_in_tile_ -= config.stages;
  }
  // Takes the scales of this turn, if they are loaded for whole turns, and then loads those of the next one, before its steps.
  KILN_MEMBER void take_scales(bool more) {
    if constexpr (config.wide_scales()) {
      scales_.take(operands_.scales);
      platform::schedule_barrier();
      if (more) scales_.load(operands_.scales, config.stages);
      platform::schedule_barrier();
    }
  }
  KILN_MEMBER void add(int slot) {
    if constexpr (config.wide_scales()) scales_.give(ring_[slot].scales, slot);
    if constexpr (config.staged) ring_[slot].take_a(operands_, slot);
    sums_.add(ring_[slot]);
  }
  // Adds a step of the last turn. Only the last step may reach beyond the end of k: zeroing in the turns before would need copies that
  // double the ring's registers. With scales of blocks, barriers keep one step after the other for the same reason.
  KILN_MEMBER void add_last(int slot, bool may_end) {
    if constexpr (config.k_tail())
      if (may_end && left_in_tile_ == static_cast<u32>(slot) + 1) ring_[slot].cut(operands_, slot);
    add(slot);
    if constexpr (config.block_scaled()) platform::schedule_barrier();
    sums_.settle();
    if constexpr (config.block_scaled()) platform::schedule_barrier();
  }

  Operands operands_;
  Slot ring_[config.stages];
  [[no_unique_address]] Either<config.wide_scales(), TurnScales<config>, NoScales> scales_;
  GemmSums<config, A, B, config.method> sums_;
  u32 wave_;
  u32 count_ = 0;        // steps of this wave in the segment
  u32 left_in_tile_ = 0; // steps from the current turn's first one to the end of k
};

} // namespace kiln
