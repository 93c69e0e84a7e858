// GemmSharedRows: the waves of a workgroup have columns of a tile each, and share the rows of A, a step of which lies in LDS.
//
// All waves take all steps. Each loads its columns of B and 16 rows of A, and keeps `stages` steps of both in flight in registers. It puts
// its rows, with their scales, into one of three places in LDS, two steps before they are multiplied, with one barrier a step.
// LDS only passes registers on: lane l multiplies what lane l of the wave that loaded it has, 16 bytes a lane without gaps, which no bank
// conflicts with. Sums stay in registers.
#pragma once
#include "gemm/gemm.h"

namespace kiln {

// Sums row tile by row tile. Those of a group are added times their scales while the next row tile is multiplied.
template <GemmConfig config, class A, class B> struct RowTileSums : MatrixSums<config, A, B> {
  using Sums = MatrixSums<config, A, B>;
  using typename Sums::OfGroup, typename Sums::S, typename Sums::Slot;
  using Sums::a_rows, Sums::b_rows, Sums::products, Sums::scales, Sums::sums;
  OfGroup groups_of_row[products][b_rows]; // of the row tile before
  u32 of_columns[products][b_rows][config.loads]; // of MX formats: the step's scales of B

  KILN_MEMBER void clear() {
    Sums::clear();
    if constexpr (config.block_scaled()) each_column([&](int p, int i) KILN_LAMBDA { groups_of_row[p][i] = OfGroup(0); });
    if constexpr (config.block_scaled()) for_each<products>([&](int p) KILN_LAMBDA { scales[p][a_rows - 1] = S(0); });
  }
  // Adds a row tile, whose words alone the slot has to have. `finish` stands behind all of a step, before the next one.
  KILN_MEMBER void add_row(const Slot& slot, int r) {
    if constexpr (config.block_scaled()) {
      OfGroup now[products][b_rows];
      each_column([&](int p, int i) KILN_LAMBDA { now[p][i] = OfGroup(0); });
      for (int u = 0; u < config.loads; u += Sums::words) {
        each_column([&](int p, int i) KILN_LAMBDA { Sums::multiply_at(slot, p, i, r, u, now[p][i]); });
        if (r > 0 && u == 0) add_groups_of(r - 1);
      }
      each_column([&](int p, int i) KILN_LAMBDA { groups_of_row[p][i] = now[p][i]; });
      for_each<products>([&](int p) KILN_LAMBDA { scales[p][r] = all_of<S>(slot.scales.scale(r, p, 0)); });
    } else if constexpr (config.a.mx()) {
      for_each<config.loads>([&](int u) KILN_LAMBDA {
        u32 of_row = slot.scales.scale_of_a(r, u);
        platform::pin_vgpr(of_row);
        each_column([&](int p, int i) KILN_LAMBDA {
          if (r == 0) platform::pin_vgpr(of_columns[p][i][u] = slot.scales.scale_of_b(p, i, u));
          Sums::multiply_mx_at(slot, p, i, r, u, of_columns[p][i][u], of_row);
          if (u + 1 == config.loads) platform::pin_vgpr(sums[p][i][r]); // as those of groups
        });
      });
    } else {
      for (int u = 0; u < config.loads; u += Sums::words)
        each_column([&](int p, int i) KILN_LAMBDA { Sums::multiply_at(slot, p, i, r, u, sums[p][i][r]); });
    }
  }
  KILN_MEMBER void finish() {
    if constexpr (config.block_scaled()) add_groups_of(a_rows - 1);
  }
  KILN_MEMBER Vec<f32, 4> numbers(int p, int i, int r) const { return convert<Vec<f32, 4>>(sums[p][i][r]); }

private:
  template <class F> static KILN_MEMBER void each_column(F f) { for_each<products, b_rows>(f); }
  // Pinned where it stands: LLVM would move sums to where they are stored, and keep those of many groups until then.
  KILN_MEMBER void add_groups_of(int r) {
    each_column([&](int p, int i) KILN_LAMBDA {
      sums[p][i][r] += convert<S>(groups_of_row[p][i]) * scales[p][r];
      platform::pin_vgpr(sums[p][i][r]);
    });
  }
};

template <GemmConfig config, class A, class B> class GemmSharedRows {
  static constexpr GemmConfig of_wave = config.of_wave(), of_loads = config.of_row_loads();
  using Operands = GemmOperands<of_wave, A, B>;
  using RowOperands = GemmOperands<of_loads, A, B>;
  static constexpr int words = config.loads, a_rows = Operands::a_rows, columns = Operands::b_rows;
  static constexpr int ahead = config.row_tiles_ahead < a_rows ? config.row_tiles_ahead : a_rows; // row tiles that come from LDS
  static constexpr int rest = config.steps_per_tile() % config.stages;                            // steps of the last turn, if it is not whole
  static constexpr bool has_scales = !config.a.plain();

  struct Step {
    Word16 a[words], b[config.products][columns][words];
    [[no_unique_address]] GemmScales<of_loads> scales;
  };
  using Rows = Word16[config.shared_places][config.waves][words][wave_size];
  using Scale = Either<config.a.mx(), u32, f32>; // of MX formats two in a register
  using Scales = Scale[config.shared_places][config.waves][wave_size];
  static KILN_MEMBER Rows& rows() {
    static __shared__ Rows memory;
    return memory;
  }
  static KILN_MEMBER Scales& scales() {
    static __shared__ Scales memory;
    return memory;
  }

public:
  static constexpr int chunk_rows = a_rows, chunk_columns = columns, chunks = a_rows * columns; // of C, of a lane

  // The rows of A of a workgroup, of `count` that exist, and of them the 16 that a wave loads; in place of missing rows the last one.
  struct OwnRows {
    u32 count, first, end, wave;
    KILN_MEMBER u32 operator()(u32 row) const { return smaller(first + wave * 16 + row, end - 1); }
  };

  KILN_MEMBER void start(OwnRows own, const void* a_scale) {
    wave_ = own.wave;
    operands_.start(RowsInOrder{own.count}, nullptr);
    row_operands_.start(own, a_scale);
  }
  // The loads of the first turn of a tile.
  template <class... Bs> KILN_MEMBER void begin(u32 tile, const A* a, Bs... b) {
    constexpr u32 last = of_wave.tiles() - 1; // not in the call: LLVM would load the config from memory
    const u32 own_columns = smaller(tile * config.waves + wave_, last); // beyond n: columns that nobody stores
    operands_.move_to(own_columns, 0, a, b...);
    row_operands_.move_to(own_columns, 0, a, b...);
    platform::schedule_barrier();
    for_each<config.stages>([&](int i) KILN_LAMBDA { load(i, i); });
  }
  // As GemmRing: a step is multiplied first and then reloaded. Loads in place of missing steps read the last one again.
  template <class AtTheEnd> KILN_MEMBER void accumulate(AtTheEnd at_the_end) {
    sums_.clear();
    put(0, 0);
    put(1, 1);
    for_each<all_columns>([&](int i) KILN_LAMBDA { arrange(0, i); });
    platform::barrier();
    for_each<ahead>([&](int r) KILN_LAMBDA { take(r, 0); });
    u32 left = platform::pin_sgpr(static_cast<u32>(config.steps_per_tile())); // opaque: LLVM would make straight code of a short loop
#pragma nounroll
    for (; left >= 2 * config.stages; left -= config.stages) {
      for_each<config.stages>([&](int i) KILN_LAMBDA { add_and_load(i, config.stages + i); });
      advance();
    }
    if constexpr (rest > 0) {
      for_each<config.stages>([&](int i) KILN_LAMBDA { add_and_load(i, config.stages + (i < rest ? i : rest - 1)); });
      advance();
    }
    at_the_end();
    platform::schedule_barrier();
    constexpr int last = rest > 0 ? rest : config.stages;
    for_each_constant<last>([&](auto i) KILN_LAMBDA {
      add(i, i + 1 < last ? i + 1 : i);
      if constexpr (i + 2 < last) put(i + 2, behind(behind(at_)));
      at_ = behind(at_);
      platform::schedule_barrier();
    });
    sums_.finish();
  }
  // The row of the block, and the column of the tile, of a lane's chunk c.
  KILN_MEMBER u32 row(int c) const { return c / columns * 16 + platform::lane_id() % 16; }
  KILN_MEMBER u32 column(int c) const { return wave_ * config.wave_tile_n() + c % columns * 16 + platform::lane_id() / 16 * 4; }
  // f(c, the sums of each product of chunk c)
  template <class F> KILN_MEMBER void each_chunk(F f) const {
    for_each<chunks>([&](int c) KILN_LAMBDA {
      Vec<f32, 4> parts[config.products];
      for_each<config.products>([&](int p) KILN_LAMBDA { parts[p] = sums_.numbers(p, c % columns, c / columns); });
      f(c, parts);
    });
  }

private:
  // Rows of A first: they are waited for first.
  KILN_MEMBER void load(int place, u32 step) {
    Step& to = ring_[place];
    for_each<words>([&](int u) KILN_LAMBDA { to.a[u] = row_operands_.load_a(0, step, u, 0); });
    for_each<config.products, columns, words>([&](int p, int i, int u) KILN_LAMBDA { to.b[p][i][u] = operands_.load_b(p, i, step, u); });
    to.scales.load(row_operands_.scales, step);
    platform::schedule_barrier();
  }
  KILN_DEVICE u32 behind(u32 place) { return place + 1 == config.shared_places ? 0 : place + 1; }
  // This wave's rows of a place of the ring into one of LDS. Words of whole lines become words of their rows on the way.
  KILN_MEMBER void put(int place, u32 to) {
    const u32 lane = platform::lane_id();
    for_each<words>([&](int u) KILN_LAMBDA {
      if constexpr (RowOperands::whole_lines) rows()[to][wave_][lane / 8 % 2][lane / 16 * 16 + u * 8 + lane % 8] = ring_[place].a[u];
      else rows()[to][wave_][u][lane] = ring_[place].a[u];
    });
    if constexpr (has_scales) scales()[to][wave_][lane] = ring_[place].scales.a[0][0];
  }
  // A row tile of a place in LDS.
  KILN_MEMBER void take(int r, u32 from) {
    const u32 lane = platform::lane_id();
    for_each<words>([&](int u) KILN_LAMBDA { rows_.a[r][u] = rows()[from][r][u][lane]; });
    if constexpr (has_scales) rows_.scales.a[r][0] = scales()[from][r][lane];
  }
  // Row tiles are read while those before them are multiplied, the first ones of a step while the last ones of the step before are. So are
  // words of whole lines of the `next` place's columns exchanged, if that is another one.
  KILN_MEMBER void add(int place, int next) {
    platform::barrier();
    sums_.finish(); // of the step before
    for_each<config.products, columns, words>([&](int p, int i, int u) KILN_LAMBDA { rows_.b[p][i][u] = ring_[place].b[p][i][u]; });
    if constexpr (has_scales) rows_.scales.take_b(ring_[place].scales);
    for_each_constant<a_rows>([&](auto r) KILN_LAMBDA {
      if constexpr (r + ahead < a_rows) take(r + ahead, at_);
      sums_.add_row(rows_, r);
      if constexpr (r + ahead >= a_rows)
        if (next != place) take(r + ahead - a_rows, behind(at_));
      for_each_constant<of_tile>([&](auto i) KILN_LAMBDA {
        if constexpr (r * of_tile + i < all_columns)
          if (next != place) arrange(next, r * of_tile + i);
      });
      platform::schedule_barrier();
    });
  }
  static constexpr int all_columns = config.products * columns, of_tile = ceil_div(all_columns, a_rows); // that are arranged beside a row tile
  KILN_MEMBER void arrange(int place, int column) {
    if constexpr (Operands::whole_lines) GemmSlot<of_wave, A, B>::exchange(ring_[place].b[column / columns][column % columns]);
  }
  KILN_MEMBER void add_and_load(int place, u32 step) {
    add(place, (place + 1) % config.stages);
    load(place, step);
    put((place + 2) % config.stages, behind(behind(at_)));
    at_ = behind(at_);
    platform::schedule_barrier();
  }
  KILN_MEMBER void advance() {
    operands_.advance(config.stages);
    row_operands_.advance(config.stages);
  }

  Operands operands_;
  RowOperands row_operands_;
  Step ring_[config.stages];
  GemmSlot<of_wave, A, B> rows_;   // that are multiplied, with the step's columns
  RowTileSums<of_wave, A, B> sums_;
  u32 wave_, at_ = 0; // at: the place in LDS that is multiplied
};

} // namespace kiln
