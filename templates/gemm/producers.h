// Specialised waves: GemmLoader loads steps of B or of A into slots in LDS, GemmReader multiplies what lies there.
//
// Steps of a workgroup are numbered through all its segments. Step t is in slot t % slots, and the waves of a kind take steps
// in turn, so that a slot's part has one producer and one reader at a time. Three flags a slot count its turns: `b` and `a`
// are raised when a part is full, `free` when the reader has the slot's content in registers. Whoever raises a flag has
// completed its own accesses before: the fences say so to the compiler, which moves accesses otherwise.
//
// In a slot, what one load brings the 64 lanes lies lane after lane, and lane l multiplies what lane l loaded: LDS only passes
// registers on. 16 bytes a lane without gaps have no bank conflicts, neither for ds_write_b128 nor for ds_read_b128, and it is
// the one layout that direct loads can make.
#pragma once
#include "gemm/matrix_sums.h"
#include "gemm/segment.h"

namespace kiln {

// The slots, their flags, and a wave's way through them.
template <GemmConfig config, class A, class B> struct GemmSlots {
  static_assert(!config.direct || has_wide_lds_dma, "this target has no 128-bit loads to LDS");
  using Operands = GemmOperands<without_producers(config), A, B>;
  static constexpr int b_loads = config.b_loads(), a_loads = config.a_loads();
  static constexpr u32 slots = config.slots;

  struct Lds {
    Word16 words[slots][b_loads + a_loads][wave_size];
    u32 b[slots], a[slots], free[slots];
  };
  static KILN_MEMBER Lds& lds() {
    static __shared__ Lds memory;
    return memory;
  }
  KILN_DEVICE void clear() {
    Lds& memory = lds();
    const u32 thread = platform::thread_id();
    if (thread < slots) memory.b[thread] = memory.a[thread] = memory.free[thread] = 0;
    platform::barrier();
  }

  // The next step of a wave that takes every `waves`th one: of the workgroup, its slot, how often that was used before.
  template <u32 waves> struct Cursor {
    u32 step, slot, turn = 0;
    u32 base = 0; // steps of the segments that the wave has begun
    KILN_MEMBER explicit Cursor(u32 index) : step(index), slot(index) {}
    KILN_MEMBER void advance() {
      step += waves;
      slot += waves;
      if (slot >= slots) slot -= slots, ++turn;
    }
    // Steps of a segment that the wave takes; where in the segment the first one is.
    KILN_MEMBER u32 steps_of(const GemmSegment& segment) const {
      const u32 end = base + segment.count;
      return step < end ? (end - step + waves - 1) / waves : 0;
    }
    KILN_MEMBER u32 first() const { return step - base; }
  };

  // Until another wave has counted a slot's flag up to `turn`. What that wave did before is seen after.
  template <bool beside_direct_loads = false> KILN_DEVICE void await(const u32& flag, u32 turn) {
    if (platform::read_flag<beside_direct_loads>(&flag) != turn) {
      do platform::sleep();
      while (platform::read_flag<beside_direct_loads>(&flag) != turn);
    }
    platform::acquire_lds();
  }

  // Calls f(load's number, product or row of A, row of B or word of A, u) in the order of a slot.
  template <bool of_b, class F> KILN_DEVICE void each_load(F f) {
    int n = 0;
    if constexpr (of_b) for_each<config.products, Operands::b_rows, config.loads>([&](int p, int i, int u) KILN_LAMBDA { f(n++, p, i, u); });
    else for_each<Operands::a_rows, config.loads, Operands::ratio>([&](int i, int u, int w) KILN_LAMBDA { f(n++, i, w, u); });
  }
};

// A wave that loads B, or A.
template <GemmConfig config, class A, class B, bool of_b> class GemmLoader {
  using Slots = GemmSlots<config, A, B>;
  using Operands = typename Slots::Operands;
  static constexpr int waves = of_b ? config.b_producers : config.a_producers;
  static constexpr int ring = of_b ? config.stages : config.a_stages();
  static constexpr int loads = of_b ? Slots::b_loads : Slots::a_loads, first = of_b ? 0 : Slots::b_loads; // in a slot
  using Cursor = typename Slots::template Cursor<waves>;

public:
  static constexpr bool sums = false;

  KILN_MEMBER void start(u32 rows, u32 index, const void*) {
    operands_.start(RowsInOrder{rows}, nullptr);
    at_ = issue_ = Cursor(index);
  }
  // The first ring of a segment. Registers: a wave without steps reads the segment's last one, and passes nothing on.
  template <class... Bs> KILN_MEMBER void begin(const GemmSegment& segment, const A* a, Bs... b) {
    count_ = at_.steps_of(segment);
    operands_.move_to(segment.tile, segment.first + smaller(at_.first(), segment.count - 1), a, b...);
    at_.base += segment.count;
    platform::schedule_barrier();
    if constexpr (config.direct) {
#pragma nounroll
      for (u32 i = 0; i < smaller(ring, count_); ++i) issue(i);
    } else {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        fetch(i, smaller(i, count_ ? count_ - 1 : 0));
        platform::schedule_barrier();
      }
    }
  }
  template <class AtTheEnd> KILN_MEMBER void accumulate(AtTheEnd) {
    if constexpr (config.direct) produce_directly();
    else produce_through_registers();
  }

private:
  // Into the ring's registers the wave's step `nth` from where the addresses are.
  KILN_MEMBER void fetch(int place, u32 nth) {
    Slots::template each_load<of_b>([&](int n, int x, int y, int u) KILN_LAMBDA {
      if constexpr (of_b) words_[place][n] = operands_.load_b(x, y, nth * waves, u);
      else words_[place][n] = operands_.load_a(x, nth * waves, u, y);
    });
  }
  KILN_MEMBER void put(int place) {
    auto& memory = Slots::lds();
    Slots::await(memory.free[at_.slot], at_.turn);
#pragma unroll
    for (int n = 0; n < loads; ++n) memory.words[at_.slot][first + n][platform::thread_id() % wave_size] = words_[place][n];
    platform::release_lds();
    raise();
  }
  KILN_MEMBER void raise() {
    auto& memory = Slots::lds();
    platform::raise_flag<config.direct>(of_b ? &memory.b[at_.slot] : &memory.a[at_.slot], at_.turn + 1);
    at_.advance();
  }
  // A place of the ring is passed on first and reloaded then, as in GemmRing.
  KILN_MEMBER void produce_through_registers() {
    u32 left = count_;
#pragma nounroll
    for (; left > ring; left -= ring) {
#pragma unroll
      for (int i = 0; i < ring; ++i) {
        put(i);
        platform::schedule_barrier();
        fetch(i, smaller(ring + i, left - 1));
        platform::schedule_barrier();
      }
      operands_.advance(ring * waves);
    }
#pragma unroll
    for (int i = 0; i < ring; ++i)
      if (static_cast<u32>(i) < left) put(i);
  }

  // Straight into the next slot, when that is free, the wave's step `nth` from where the addresses are.
  KILN_MEMBER void issue(u32 nth) {
    if constexpr (config.direct) {
      auto& memory = Slots::lds();
      Slots::template await<true>(memory.free[issue_.slot], issue_.turn);
      Slots::template each_load<of_b>([&](int n, int x, int y, int u) KILN_LAMBDA {
        const auto from = of_b ? operands_.place_of_b(x, y, nth * waves, u) : operands_.place_of_a(x, nth * waves, u, y);
        platform::load_to_lds<of_b>(from.base, from.offset, memory.words[issue_.slot][first + n]);
      });
      issue_.advance();
    }
  }
  // A step is declared full when its loads have landed, a ring after they were issued.
  KILN_MEMBER void produce_directly() {
    u32 left = count_;
#pragma nounroll
    for (; left > ring; --left) {
      platform::await_loads<(ring - 1) * loads>();
      raise();
      issue(ring);
      operands_.advance(waves);
    }
    last_flags(left);
  }
  template <int behind = ring - 1> KILN_MEMBER void last_flags(u32 left) {
    if (static_cast<u32>(behind) < left) {
      platform::await_loads<behind * loads>();
      raise();
    }
    if constexpr (behind > 0) last_flags<behind - 1>(left);
  }

  Operands operands_;
  Word16 words_[config.direct ? 1 : ring][loads];
  Cursor at_{0}, issue_{0}; // issue_: of direct loads, up to a ring ahead
  u32 count_ = 0;           // steps of this wave in the segment
};

// A wave that multiplies.
template <GemmConfig config, class A, class B> class GemmReader {
  static constexpr GemmConfig multiplied = without_producers(config);
  using Slots = GemmSlots<config, A, B>;
  using Operands = typename Slots::Operands;
  static constexpr u32 waves = config.summing_waves();

public:
  static constexpr bool sums = true;

  KILN_MEMBER void start(u32 rows, u32 index, const void*) {
    operands_.start(RowsInOrder{rows}, nullptr);
    at_ = typename Slots::template Cursor<waves>(index);
  }
  template <class... Bs> KILN_MEMBER void begin(const GemmSegment& segment, const A* a, Bs... b) {
    count_ = at_.steps_of(segment);
    operands_.move_to(segment.tile, segment.first + at_.first(), a, b...);
    left_in_tile_ = config.steps_per_tile() - segment.first - at_.first();
    at_.base += segment.count;
  }
  template <class AtTheEnd> KILN_MEMBER void accumulate(AtTheEnd at_the_end) {
    sums_.clear();
    auto& memory = Slots::lds();
#pragma nounroll
    for (u32 left = count_; left; --left) {
      Slots::await(memory.b[at_.slot], at_.turn + 1);
      Slots::await(memory.a[at_.slot], at_.turn + 1);
      GemmSlot<multiplied, A, B> slot;
      Slots::template each_load<true>([&](int n, int p, int i, int u) KILN_LAMBDA { slot.b[p][i][u] = memory.words[at_.slot][n][platform::thread_id() % wave_size]; });
      Slots::template each_load<false>([&](int n, int i, int w, int u) KILN_LAMBDA {
        slot.a[i][u * Operands::ratio + w] = memory.words[at_.slot][Slots::b_loads + n][platform::thread_id() % wave_size];
      });
      platform::release_lds();
      platform::raise_flag<false>(&memory.free[at_.slot], at_.turn + 1);
      at_.advance();
      if constexpr (config.k_tail()) {
        if (left_in_tile_ == 1) slot.cut(operands_, 0);
        left_in_tile_ -= waves;
        operands_.advance(waves);
      }
      sums_.add(slot);
    }
    at_the_end();
  }
  KILN_MEMBER void to_lds(f32* tile, int round) const { sums_.to_lds(tile, round); }

private:
  Operands operands_; // for the end of k only
  GemmSums<multiplied, A, B, GemmMethod::matrix> sums_;
  typename Slots::template Cursor<waves> at_{0};
  u32 count_ = 0;        // steps of this wave in the segment
  u32 left_in_tile_ = 0; // steps from this wave's next one to the end of k
};

} // namespace kiln
