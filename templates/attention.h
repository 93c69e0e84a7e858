// Attention<config>: which steps a workgroup takes, and how sums of waves and workgroups meet.
#pragma once
#include "attention/steps.h"
#include "attention/wave.h"
#include "common/loops.h"
#include "common/tile_chunk.h"
#include "gemm/stream_k.h"

namespace kiln {

// The log-sum-exp of a row, where an emitted text takes a pointer.
struct OfThisRow {
  f32 value;
  KILN_MEMBER OfThisRow operator+(u64) const { return *this; }
};

// A finished chunk of a row of the result, with the row's log-sum-exp.
template <AttentionConfig config> class AttentionChunk : public TileChunk<config.values(), config.vec> {
  using Base = TileChunk<config.values(), config.vec>;

public:
  // The row exists, and counts [sequences, tokens, heads].
  KILN_MEMBER AttentionChunk(u32 row, u32 column) : Base(row, column, row + 1), column_(column) {}
  using Base::of_row;
  KILN_MEMBER f32 of_row(OfThisRow own, u64 = 0) const { return own.value; }
  // One number a row: by the lane with its first columns.
  template <class T> KILN_MEMBER void store_of_row(T* tensor, f32 value, u64 row_stride = 1) const {
    if (column_ == 0) store_chunk<T, 1>(tensor + this->index() * row_stride, 0, 0, to<T>(Vec<f32, 1>(value)));
  }

private:
  u32 column_;
};

template <AttentionConfig config, class Q, class C, class Region> class Attention {
  static_assert(why_invalid(config) == nullptr, "invalid AttentionConfig");
  static_assert(config.q_bits == 8 * sizeof(Q) && config.cache_bits == 8 * sizeof(C));
  using Part = Vec<f32, 4>;
  using Wave = AttentionWave<config, Q, C>;
  using Runs = ActiveRuns;
  static constexpr int row_tiles = config.tiles, units = config.units(), column_parts = config.column_parts();
  static constexpr bool shares = config.workgroups > 1; // else there is no workspace, and every item is whole

public:
  // `workspace` has config.workspace_bytes(), zero before the first launch; every launch leaves its counters zero.
  KILN_MEMBER Attention(const Q* q, const C* k, const C* v, CacheScales scales, u32 length, const i32* pages, u32 pages_a_sequence, const i32* lengths, u32 sequences,
                        void* workspace, Region region)
      : q_(q), cache_(k, v, scales, length, pages, pages_a_sequence, wave_index() % column_parts), steps_(lengths, sequences, region), stream_(workspace, platform::block_x(), runs(steps_.total(), sequences * config.items())) {}

  // `score(ScoreRow)` gives the score expression of a row, epilogue(AttentionChunk, InRegisters<Part>, OfThisRow) takes a finished chunk.
  template <class Score, class Epilogue> KILN_MEMBER void run(Score score, Epilogue epilogue) {
    if constexpr (config.parts > 0) run_parts(score, epilogue);
    else run_steps(score, epilogue);
  }

private:
  template <class Score, class Epilogue> KILN_MEMBER void run_steps(Score& score, Epilogue& epilogue) {
    const u32 end = stream_.end_step();
    u32 at = stream_.first_step();
    if (at == end) {
      if constexpr (shares) stream_.skip();
      return;
    }
    AttentionItem item = steps_.find(at);
    for (bool again = false;; again = true) {
      const u32 from = at - item.begin, left = end - at, count = item.steps - from < left ? item.steps - from : left;
      Wave wave;
      multiply(wave, item, from, count, score);
      const bool whole = !shares || count == item.steps;
      if constexpr (shares)
        if (!again) stream_.load_generation();
      const u32 arrived = whole ? 0 : stream_.register_arrival(item.begin);
      platform::await_mfma_results<16>();
      finish(wave, item, whole, arrived, again, epilogue);
      at += count;
      if (at == end) return;
      item = steps_.next(item);
    }
  }
  // Parts of items, each summed up by itself and added in the order of the keys, whichever workgroups have them: an item's own length alone
  // says where its parts begin. A workgroup adds the first parts of an item before it publishes them as one, and publishes each of the
  // others, as what they are added to is elsewhere.
  template <class Score, class Epilogue> KILN_MEMBER void run_parts(Score& score, Epilogue& epilogue) {
    const u32 end = stream_.end_step();
    u32 at = stream_.first_step();
    if (at == end) return stream_.skip();
    AttentionItem item = steps_.find(at);
    u32 first = at - item.begin; // of the item's parts, in this workgroup
    Sums total;
    for (bool again = false;; again = true) {
      const u32 part = at - item.begin, from = item.first_step_of(part);
      Wave wave;
      multiply(wave, item, from, item.first_step_of(part + 1) - from, score);
      if (!again) stream_.load_generation();
      const bool last = part + 1 == item.count || at + 1 == end, whole = first == 0 && part + 1 == item.count;
      const u32 arrived = last && !whole ? stream_.register_arrival(item.begin) : 0;
      platform::await_mfma_results<16>();
      Sums sums;
      sum_waves(wave, sums, arrived, again);
      stream_.store_generation();
      if (first == 0 && part > 0) total.add([&](int i) KILN_LAMBDA { return sums.number(i); });
      else total = sums;
      if (!whole && (first > 0 || last)) stream_.publish_at(total, first > 0 ? part : 0);
      if (last && (whole || collects(item, total))) store(item, total, epilogue);
      if (++at == end) return;
      if (part + 1 < item.count) continue;
      item = steps_.next(item);
      first = 0;
    }
  }
  struct Lds {
    f32 sums[config.waves][16 * config.lds_row()];
    Vec<f32, 2> rows[config.waves][row_tiles * 16]; // reference and sum of weights
    Word16 q[config.q_lds_words()][wave_size];
    u32 arrived;
  };
  static KILN_MEMBER Lds& lds() {
    static __shared__ Lds memory;
    return memory;
  }
  static KILN_MEMBER Runs runs(u32 steps, u32 items) {
    if constexpr (!shares) return {steps, 1, static_cast<f32>(steps)};
    if constexpr (config.parts > 0) {
      const u32 busy = steps < config.workgroups ? steps : config.workgroups;
      return {steps, busy, static_cast<f32>(steps) * platform::rcp(static_cast<f32>(busy))};
    }
    const f32 of_item = platform::rcp(static_cast<f32>(items)) * 1.001f; // above its rounding, so that 16 parts are not 15
    const u32 active =
        platform::uniform(config.active_workgroups(steps, items, platform::sqrt(static_cast<f32>(steps) * of_item), config.workgroups * of_item));
    return {steps, active, static_cast<f32>(steps) * platform::rcp(static_cast<f32>(active))};
  }
  KILN_DEVICE u32 wave_index() { return platform::uniform(platform::thread_id() / wave_size); }

  // This wave's steps of `count` ones of an item, from its step `from` on.
  template <class Score> KILN_MEMBER void multiply(Wave& wave, const AttentionItem& item, u32 from, u32 count, Score& score) {
    wave.clear();
    if constexpr (config.q_in_lds()) {
      Wave::share_q(q_, item.sequence, item.head, wave_index(), lds().q);
      platform::barrier();
    }
    const u32 w = wave_index() / column_parts, first = count * w / config.key_waves(), steps = count * (w + 1) / config.key_waves() - first;
    if (steps == 0 || item.length == 0) return;
    const auto of_tile = [&](int r) KILN_LAMBDA {
      return score(ScoreRow<config>(Wave::own_row(item.sequence, item.head, r), item.length, cache_.keys()));
    };
    if constexpr (config.q_in_lds()) wave.shared_q = lds().q;
    else wave.load_q(q_, item.sequence, item.head);
    cache_.move_to(item.sequence, item.head / config.row_blocks(), item.length);
    const u32 key = item.first_key + (from + first) * config.step_keys();
    using OfRow = decltype(of_tile(0));
    if constexpr (row_tiles == 1) {
      const OfRow scores[1] = {of_tile(0)};
      wave.accumulate(cache_, key, steps, item.length, scores);
    } else if constexpr (row_tiles == 2) {
      const OfRow scores[2] = {of_tile(0), of_tile(1)};
      wave.accumulate(cache_, key, steps, item.length, scores);
    } else if constexpr (row_tiles == 3) {
      const OfRow scores[3] = {of_tile(0), of_tile(1), of_tile(2)};
      wave.accumulate(cache_, key, steps, item.length, scores);
    } else {
      const OfRow scores[4] = {of_tile(0), of_tile(1), of_tile(2), of_tile(3)};
      wave.accumulate(cache_, key, steps, item.length, scores);
    }
  }

  // ---- sums of waves and workgroups. A lane has four columns of one row of each unit.

  KILN_DEVICE u32 unit_row() { return platform::thread_id() / 16; }
  KILN_DEVICE u32 unit_column(int unit) {
    const u32 c = platform::thread_id() % 16 * 4;
    return unit / 2 % config.blocks() * 128 + c / 16 * 32 + unit % 2 * 16 + c % 16;
  }
  KILN_DEVICE int tile_of(int unit) { return unit / (2 * config.blocks()); }

  // What a lane has of an item, as a part of gemm/stream_k.h: the sums of its units, each row's relative to a reference.
  struct Sums {
    Part parts[units];
    f32 reference[row_tiles], weights[row_tiles];

    static constexpr int in_parts = units * 4, numbers = config.lane_numbers();
    template <class F> static KILN_MEMBER void each_number(F f) { for_each<numbers>(f); }
    KILN_DEVICE bool is_own(int i) { return i < in_parts || platform::thread_id() % 16 == 0; } // the lanes of a row have the same
    KILN_DEVICE u32 word(int i) {
      if (i < in_parts) return i * config.threads() + platform::thread_id();
      return in_parts * config.threads() + (i - in_parts) * 16 + unit_row();
    }
    KILN_MEMBER f32 number(int i) const {
      if (i < in_parts) return parts[i / 4][i % 4];
      return i % 2 ? weights[(i - in_parts) / 2] : reference[(i - in_parts) / 2];
    }
    KILN_MEMBER void clear() {
      for_each<units>([&](int u) KILN_LAMBDA { parts[u] = Part(0); });
      for_each<row_tiles>([&](int r) KILN_LAMBDA { reference[r] = Wave::min_reference, weights[r] = 0; });
    }
    template <class F> KILN_MEMBER void take(F number) {
      for_each<units>([&](int u) KILN_LAMBDA { parts[u] = Part{number(4 * u), number(4 * u + 1), number(4 * u + 2), number(4 * u + 3)}; });
      for_each<row_tiles>([&](int r) KILN_LAMBDA { reference[r] = number(in_parts + 2 * r), weights[r] = number(in_parts + 2 * r + 1); });
    }
    template <class F> KILN_MEMBER void add(F number) {
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) {
        const f32 other = number(in_parts + 2 * r), most = platform::max(reference[r], other);
        const f32 own = platform::exp2(reference[r] - most), others = platform::exp2(other - most);
        reference[r] = most;
        weights[r] = scaled_sum(weights[r], own, number(in_parts + 2 * r + 1), others);
#pragma unroll
        for (int u = r * units / row_tiles; u < (r + 1) * units / row_tiles; ++u)
          parts[u] = scaled_sum(parts[u], Part(own), Part{number(4 * u), number(4 * u + 1), number(4 * u + 2), number(4 * u + 3)}, Part(others));
      }
    }
    // The compiler chooses which of two products becomes an fma. Batch-invariant parts are added at two places, alike.
    template <class V> static KILN_MEMBER V scaled_sum(V a, V own, V b, V others) {
      if constexpr (config.parts > 0) return platform::fma(a, own, b * others);
      else return a * own + b * others;
    }
  };

  // Whether this workgroup counted last for the item, and has the sum of its parts then.
  KILN_MEMBER bool collects(const AttentionItem& item, Sums& total) const {
    const u32 last = item.begin + item.count - 1;
    if (!stream_.is_last(item.begin, last, lds().arrived)) return false;
    const u32 group = stream_.group_of(item.begin), before = stream_.first_step_of(group + 1) - item.begin; // parts that are one
    stream_.template collect_from<config.parts_at_a_time()>(total, item.count + 1 - before, [&](u32 i) KILN_LAMBDA {
      const u32 part = before + i - 1;
      return i == 0 ? stream_.place(group, 0) : stream_.place(stream_.group_of(item.begin + part), part);
    });
    return true;
  }
  template <class Epilogue>
  KILN_MEMBER void finish(const Wave& wave, const AttentionItem& item, bool whole, u32 arrived, bool again, Epilogue& epilogue) {
    Sums sums;
    sum_waves(wave, sums, arrived, again);
    if constexpr (shares) {
      stream_.store_generation();
      if (!whole && !stream_.template combine<config.parts_at_a_time()>(sums, item.begin, item.begin + item.steps - 1, lds().arrived)) return;
    }
    store(item, sums, epilogue);
  }
  // The sums of the waves, by way of LDS. Ends behind a barrier, so that `arrived`, of thread 0, is known to all.
  KILN_MEMBER void sum_waves(const Wave& wave, Sums& sums, u32 arrived, bool again) {
    if (again) platform::barrier(); // LDS is read no more
    const u32 lane = platform::thread_id() % wave_size, w = wave_index();
    if (lane < 16) {
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) lds().rows[w][r * 16 + lane] = Vec<f32, 2>{wave.reference[r], wave.weights[r][0]};
    }
#pragma unroll
    for (int u = 0; u < units / column_parts; ++u) { // of those that a wave has
      if (u) platform::barrier();
      to_lds(wave, u, lds().sums[w]);
      if constexpr (shares)
        if (u == units / column_parts - 1) {
          if (platform::thread_id() == 0) lds().arrived = arrived;
          stream_.pin_generation();
        }
      platform::barrier();
#pragma unroll
      for (int part = 0; part < column_parts; ++part) {
        const int tile = u / (2 * config.wave_blocks()), unit = (tile * column_parts + part) * 2 * config.wave_blocks() + u % (2 * config.wave_blocks());
        if (unit % (2 * config.blocks()) == 0) add_rows(tile, sums);
        sums.parts[unit] = sum_of_waves(tile, part, sums.reference[tile]);
      }
    }
  }
  template <class Epilogue> KILN_MEMBER void store(const AttentionItem& item, const Sums& sums, Epilogue& epilogue) const {
#pragma unroll
    for (int u = 0; u < units; ++u) {
      const int r = tile_of(u);
      const u32 row = Wave::row_of(item.head, r, unit_row()), column = unit_column(u);
      const f32 total = sums.weights[r];
      f32 share = total == 0 ? 0.0f : platform::rcp(total);
      if constexpr (config.v_scale == KeyScale::all || config.v_scale == KeyScale::head) share *= cache_.v_scale(item.head / config.row_blocks());
      const f32 log_sum = total == 0 ? -platform::infinity : (sums.reference[r] + platform::log2(total)) * ln_2;
      if (row >= config.rows() || (config.block_tail() && column >= config.values())) continue;
      const u32 index = Wave::row_index(item.sequence, item.head, row);
      epilogue(AttentionChunk<config>(index, column), InRegisters<Part>{sums.parts[u] * share}, OfThisRow{log_sum});
    }
  }
  // Columns 32 * (l / 16) + 16 * (unit % 2) to + 15 of a block, next to those of the other quarters.
  KILN_MEMBER void to_lds(const Wave& wave, int unit, f32* to) const {
    const u32 lane = platform::thread_id() % wave_size;
    const auto& sums = wave.sums[unit / (2 * config.wave_blocks())][unit / 2 % config.wave_blocks()];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Part four;
#pragma unroll
        for (int j = 0; j < 4; ++j) four[j] = sums[half * 4 + j][unit % 2 * 2 + i];
        *reinterpret_cast<Part*>(to + lane % 16 * config.lds_row() + lane / 16 * 16 + i * 8 + half * 4) = four;
      }
  }
  KILN_MEMBER void add_rows(int r, Sums& sums) const {
    const u32 row = r * 16 + unit_row();
    f32 most = Wave::min_reference, total = 0;
#pragma unroll
    for (int w = 0; w < config.waves; w += column_parts) most = platform::max(most, lds().rows[w][row][0]);
#pragma unroll
    for (int w = 0; w < config.waves; w += column_parts) total += lds().rows[w][row][1] * platform::exp2(lds().rows[w][row][0] - most);
    sums.reference[r] = most;
    sums.weights[r] = total;
  }
  // The sum over the waves with columns of that part.
  KILN_MEMBER Part sum_of_waves(int tile, int part_of_columns, f32 reference) const {
    const u32 row = unit_row();
    Part sum = Part(0);
#pragma unroll
    for (int w = part_of_columns; w < config.waves; w += column_parts) {
      const Part part = *reinterpret_cast<const Part*>(&lds().sums[w][row * config.lds_row() + platform::thread_id() % 16 * 4]);
      sum += part * platform::exp2(lds().rows[w][tile * 16 + row][0] - reference);
    }
    return sum;
  }

  const Q* q_;
  KeyCache<config, C> cache_;
  StepStream<config, Region> steps_;
  StreamK<config.shared(), Runs, false> stream_;
};

} // namespace kiln
