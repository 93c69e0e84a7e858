// AttentionWave: one wave's steps of a segment, by matrix instructions and an online softmax.
//
// The scores of 16 keys and 16 rows of q are K x Q^T, of which a lane has four keys of one row: lane l has row l % 16, and keys
// 4 * (l / 16) to + 3. That is how the next product wants its weights, so that they stay where they are. Values come 8 elements of four
// keys a lane; permuted in the lane, element j of 8 is column 8 * (l % 16) + j of V^T, for one matrix instruction each.
#pragma once
#include "attention/cache.h"
#include "attention/scores.h"
#include "common/loops.h"
#include "common/reduce.h"

namespace kiln {

template <AttentionConfig config, class Q, class C> struct AttentionWave {
  static constexpr int row_tiles = config.tiles, key_tiles = config.key_tiles(), blocks = config.wave_blocks(), ratio = config.q_bits / config.cache_bits;
  using Cache = KeyCache<config, C>;
  using Place = typename Cache::Place;
  using Value = Either<config.cache_bits == 16, Word16, Vec<u32, 2>>;
  using Four = Vec<f32, 4>;
  // The reference of a row is what the exponents of its weights are relative to, in powers of two: not always its largest score, but at
  // least that less `slack`. Scores below the first one, -1e30 of them, count as minus infinity.
  static constexpr f32 min_reference = -1e30f * log2_e, slack = 8;

  Word16 q[row_tiles][config.q_in_lds() ? 1 : config.q_words()];
  const Word16 (*shared_q)[wave_size]; // q_in_lds: [tile * q_words + word]
  Four sums[row_tiles][blocks][8]; // element i of [r][b][j]: row r * 16 + l % 16, column b * 128 + 8 * (4 * (l / 16) + i) + j
  Four weights[row_tiles];         // the sum of the weights of the row, four times
  f32 reference[row_tiles];

  KILN_MEMBER void clear() {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) {
      reference[r] = min_reference;
      weights[r] = Four(0);
#pragma unroll
      for (int b = 0; b < blocks; ++b)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[r][b][j] = Four(0);
    }
  }

  // Row `row` of a tile `r` of an item, of those that meet the KV head.
  KILN_DEVICE u32 row_of(u32 head, int r, u32 row) { return (head % config.row_blocks() * config.tiles + r) * 16 + row; }
  // The same counted in [sequences, tokens, heads]; the last one where there is none.
  KILN_DEVICE u32 row_index(u32 sequence, u32 head, u32 row) {
    if (config.rows() % (16 * config.tiles)) row = row < config.rows() ? row : config.rows() - 1;
    return (sequence * config.tokens + row / config.group()) * config.heads + head / config.row_blocks() * config.group() + row % config.group();
  }
  KILN_DEVICE u32 own_row(u32 sequence, u32 head, int r) { return row_index(sequence, head, row_of(head, r, platform::thread_id() % 16)); }

  // Word `w` of the lane's row of tile `r`: as the elements of the pieces of k.
  KILN_DEVICE Word16 word_of_q(const Q* from, u32 sequence, u32 head, int r, u32 w) {
    const char* const row = reinterpret_cast<const char*>(from + static_cast<u64>(own_row(sequence, head, r)) * config.d);
    const u32 quarter = platform::thread_id() % wave_size / 16;
    const u32 byte = w / ratio * 64 * ratio + quarter * 16 * ratio + w % ratio * 16;
    const bool exists = !config.piece_tail() || byte < config.d * 2u;
    const Word16 word = platform::load_word(row, exists ? byte : 0);
    return exists ? word : Word16(0);
  }
  KILN_MEMBER void load_q(const Q* from, u32 sequence, u32 head) {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int w = 0; w < config.q_words(); ++w) q[r][w] = word_of_q(from, sequence, head, r, w);
  }
  // The same to LDS, by all waves of the workgroup.
  KILN_DEVICE void share_q(const Q* from, u32 sequence, u32 head, u32 wave, Word16 (*to)[wave_size]) {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
      for (u32 w = wave; w < config.q_words(); w += config.waves)
        to[r * config.q_words() + w][platform::thread_id() % wave_size] = word_of_q(from, sequence, head, r, w);
  }

  // Steps from `key` on, `steps` of them: one at least.
  template <class Score> KILN_MEMBER void accumulate(const Cache& cache, u32 key, u32 steps, u32 length, const Score (&scores)[row_tiles]) {
    const u32 last_key = key + (steps - 1) * config.step_keys();
    const auto after = [=](u32 k) KILN_LAMBDA { return k == last_key ? k : k + config.step_keys(); };
    const Place place = cache.place(key, cache.pages(key));
    Place next = cache.place(after(key), cache.pages(after(key)));
    cache.pin_vgpr(next);
    platform::schedule_barrier();
    scale_of_k_ = cache.k_scale();
    load_k(cache, place);
    auto chunks = load_streams(scores, key);
    platform::schedule_barrier();
    load_v(cache, place);
    platform::schedule_barrier();
    const auto finish_step = [&]() KILN_LAMBDA {
      Four s[row_tiles][key_tiles];
      multiply_keys(s);
      platform::schedule_barrier();
      // Ahead of the keys and values of a step, so that no wait is for the pages of the next alone.
      const auto pages = cache.pages(after(after(key)));
      platform::schedule_barrier();
      load_k(cache, next);
      platform::schedule_barrier();
      Word16 p[row_tiles] = {};
      weigh<false>(s, p, key, length, scores, chunks);
      multiply_values(p);
      platform::schedule_barrier();
      // Behind all branches of the step: what widens an element goes into the last block, and would wait there for one that is under way.
      chunks = load_streams(scores, key + config.step_keys());
      load_v(cache, next);
      platform::schedule_barrier();
      key += config.step_keys();
      next = cache.place(after(key), pages);
    };
    // The same loop twice. Tested at its head it may give each value a second register, for what follows the loop, and copies that wait
    // for all loads (one latent head). With pages of 16 keys and more it is 3 % fewer instructions, and has no such copies.
    if constexpr (config.page != 0 && !config.small_pages() && config.value_d == 0) {
#pragma nounroll
      while (key != last_key) finish_step();
    } else if (key != last_key) {
#pragma nounroll
      do finish_step();
      while (key != last_key);
    }
    Four s[row_tiles][key_tiles];
    multiply_keys(s);
    Word16 p[row_tiles] = {};
    weigh<true>(s, p, key, length, scores, chunks);
    multiply_values(p);
  }

private:
  KILN_MEMBER void load_k(const Cache& cache, const Place& place) {
#pragma unroll
    for (int t = 0; t < key_tiles; ++t)
#pragma unroll
      for (int p = 0; p < config.pieces(); ++p) k_[t][p] = cache.load_k(place, t, p);
    if constexpr (config.scales_keys()) {
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) scales_of_k_[t] = cache.load_k_scales(place, t);
    }
  }
  KILN_MEMBER void load_v(const Cache& cache, const Place& place) {
    if constexpr (config.scales_values()) {
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) scales_of_v_[t] = cache.load_v_scales(place, t);
    }
#pragma unroll
    for (int t = 0; t < key_tiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int b = 0; b < blocks; ++b) v_[t][i][b] = cache.load_v(place, t, i, b);
  }
  KILN_DEVICE At first_of_tile(u32 key, int t) {
    return {static_cast<int>(key + t * config.tile_keys + platform::thread_id() % wave_size / 16 * 4), 4, false};
  }
  template <class Chunks> struct OfStep {
    Chunks at[row_tiles][key_tiles];
  };
  template <class Score> KILN_DEVICE auto load_streams(const Score (&scores)[row_tiles], u32 key) {
    OfStep<decltype(scores[0].load(At{}))> chunks;
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) chunks.at[r][t] = scores[r].load(first_of_tile(key, t));
    return chunks;
  }

  // Words of q, which a step reads anew where they lie in LDS.
  KILN_MEMBER Word16 query(int r, int w, u32 lane) const {
    if constexpr (config.q_in_lds()) return shared_q[r * config.q_words() + w][lane];
    else return q[r][w];
  }
  KILN_MEMBER void multiply_keys(Four (&s)[row_tiles][key_tiles]) const {
    u32 lane = platform::thread_id() % wave_size;
    if constexpr (config.q_in_lds()) platform::pin_vgpr(lane); // else the words of all steps are read before them
#pragma unroll
    for (int r = 0; r < row_tiles; ++r)
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) s[r][t] = Four(0);
#pragma unroll
    for (int p = 0; p < config.pieces(); ++p) {
      // Few words of q at a time: all of them would take the registers of a tile of keys.
      if (config.q_in_lds() && p % 4 == 0) platform::schedule_barrier();
#pragma unroll
      for (int w = 0; w < ratio; ++w)
#pragma unroll
        for (int t = 0; t < key_tiles; ++t) {
          const Word16 k = wide(k_[t][p], w);
#pragma unroll
          for (int r = 0; r < row_tiles; ++r) s[r][t] = multiply<16, Q, Q>(k, query(r, p * ratio + w, lane), s[r][t]);
        }
    }
#pragma unroll
    for (int t = 0; t < key_tiles; ++t)
#pragma unroll
      for (int r = 0; r < row_tiles; ++r) {
        if constexpr (config.scales_keys()) s[r][t] *= scales_of_k_[t];
        else if constexpr (config.k_scale != KeyScale::none) s[r][t] *= scale_of_k_;
      }
  }
  KILN_DEVICE Word16 wide(Word16 word, int part) {
    if constexpr (ratio == 1) return word;
    else return widen<Q, C>(word, part);
  }
  KILN_DEVICE Word16 wide(Vec<u32, 2> half, int) { return widen<Q, C>(Word16{half[0], half[1], 0, 0}, 0); }

  // From products to weights, rounded to q's type.
  template <bool may_end, class Score, class Chunks>
  KILN_MEMBER void weigh(Four (&s)[row_tiles][key_tiles], Word16 (&p)[row_tiles], u32 key, u32 length, const Score (&scores)[row_tiles], const Chunks& chunks) {
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) {
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) {
        const At at = first_of_tile(key, t);
        s[r][t] = scores[r](at, s[r][t], chunks.at[r][t]);
        if constexpr (may_end) {
#pragma unroll
          for (int i = 0; i < 4; ++i) s[r][t][i] = static_cast<u32>(at.chunk + i) < length ? s[r][t][i] : -platform::infinity;
        }
      }
      f32 most = s[r][0][0];
#pragma unroll
      for (int i = 1; i < 4 * key_tiles; ++i) most = platform::max(most, s[r][i / 4][i % 4]);
      if (platform::any_lane(platform::fma(most, log2_e, -reference[r]) > slack)) move_reference(r, most);
#pragma unroll
      for (int h = 0; h < 2 * key_tiles; ++h) {
        f32 e[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) e[i] = platform::exp2(platform::fma(s[r][h / 2][h % 2 * 2 + i], log2_e, -reference[r]));
        p[r][h] = pack(e[0], e[1]);
      }
    }
  }
  // To the largest score of the row so far, whichever lane has it; what was added up is brought to it.
  KILN_MEMBER void move_reference(int r, f32 most) {
    const u32 lane = platform::thread_id() % wave_size;
    if constexpr (has_permlane_swap) {
      most = detail::combine_halves<MaxOf, 16>(most);
      most = detail::combine_halves<MaxOf, 32>(most);
    } else {
      most = platform::max(most, platform::of_lane(most, lane ^ 16));
      most = platform::max(most, platform::of_lane(most, lane ^ 32));
    }
    const f32 moved = platform::max(reference[r], most * log2_e);
    const Four factor = all_of<Four>(platform::exp2(reference[r] - moved));
    reference[r] = moved;
    platform::await_mfma_results<16>();
    weights[r] *= factor;
#pragma unroll
    for (int b = 0; b < blocks; ++b)
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[r][b][j] *= factor;
  }
  // Two weights, from 0 to 2^slack: f16 rounded toward zero, bf16 to nearest. Their sum is that of the rounded ones.
  KILN_DEVICE u32 pack(f32 a, f32 b) {
    if constexpr (__is_same(Q, f16)) return platform::pack_f16(a, b);
    else return platform::permute_bytes(bit_cast<u32>(b) + 0x8000u, bit_cast<u32>(a) + 0x8000u, platform::upper_halves);
  }
  KILN_DEVICE Word16 ones() {
    constexpr u32 two = __is_same(Q, f16) ? 0x3c003c00u : 0x3f803f80u;
    return Word16(two);
  }

  KILN_MEMBER void multiply_values(const Word16 (&p)[row_tiles]) {
    // Neighbouring registers: an instruction that has two products of one scale also waits for what is loaded into the register beside it.
    if constexpr (config.scales_values()) {
#pragma unroll
      for (int t = 0; t < key_tiles; ++t) platform::pin_vgpr(scales_of_v_[t]);
    }
#pragma unroll
    for (int r = 0; r < row_tiles; ++r) weights[r] = multiply_weights(ones(), p[r], weights[r]);
#pragma unroll
    for (int b = 0; b < blocks; ++b) {
      Word16 keys[key_tiles][4];
#pragma unroll
      for (int t = 0; t < key_tiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) keys[t][i] = wide_value(t, i, b);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const u32 which = j % 2 ? platform::upper_halves : platform::lower_halves;
        Word16 column{};
#pragma unroll
        for (int h = 0; h < 2 * key_tiles; ++h)
          column[h] = platform::permute_bytes(keys[h / 2][h % 2 * 2 + 1][j / 2], keys[h / 2][h % 2 * 2][j / 2], which);
#pragma unroll
        for (int r = 0; r < row_tiles; ++r) sums[r][b][j] = multiply_weights(column, p[r], sums[r][b][j]);
      }
    }
  }

  // Products of the keys of a step, of which there are 16 or 32, with the weights.
  KILN_DEVICE Four multiply_weights(Word16 x, Word16 p, Four sum) {
    if constexpr (key_tiles == 1 && platform::mfma_bytes == 8) {
      using V = Vec<Q, 4>;
      return platform::mfma<16>(bit_cast<V>(detail::half_of(x, 0)), bit_cast<V>(detail::half_of(p, 0)), sum);
    } else {
      return multiply<16, Q, Q>(x, p, sum);
    }
  }
  // 8 elements of a value in q's type; with a scale of its key rounded to nearest.
  KILN_MEMBER Word16 wide_value(int t, int i, int b) const {
    if constexpr (config.scales_values()) {
      const Bytes<C, 8> eight = {{v_[t][i][b][0], v_[t][i][b][1]}};
      return bit_cast<Word16>(to<Q>(to<f32>(eight) * scales_of_v_[t][i]));
    } else {
      return wide(v_[t][i][b], 0);
    }
  }

  Word16 k_[key_tiles][config.pieces()];
  Value v_[key_tiles][4][blocks];
  Four scales_of_k_[key_tiles], scales_of_v_[key_tiles]; // of the lane's four keys
  f32 scale_of_k_;                                       // of the head
};

} // namespace kiln
