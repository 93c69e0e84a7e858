// KeyCache: where the keys and values of a step lie, for contiguous and paged caches, and their scales.
#pragma once
#include "attention_config.h"
#include "common/matrix.h"
#include "common/memory.h"

namespace kiln {

// Scales of the keys and values of a cache of 8 bits; nullptr for none.
struct CacheScales {
  const f32 *k = nullptr, *v = nullptr;
};

// The pages of a step's keys, a step before they are needed. Small pages: those of each lane's keys, of which it has one of k and four of
// v in a tile. Else those of the tiles.
template <AttentionConfig config> struct StepPages {
  static constexpr int lookups = config.value_lookups();
  i32 k[config.key_tiles()], v[config.key_tiles()][lookups];
};

// The place of a step. For each tile of 16 keys the first one, counted through the cache, its addresses in k and v, and how many keys
// follow it in the sequence: the same in all lanes. Small pages: the place of each lane's keys, counted through the cache.
template <AttentionConfig config> struct StepPlace {
  u64 first[config.key_tiles()];
  const char *k[config.key_tiles()], *v[config.key_tiles()];
  u32 after[config.key_tiles()];
};
template <AttentionConfig config> struct ScatteredPlace {
  u32 k[config.key_tiles()], v[config.key_tiles()][4];
};

template <AttentionConfig config, class C> class KeyCache {
  static constexpr int tiles = config.key_tiles();
  static constexpr bool scattered = config.small_pages();

public:
  using Place = Either<scattered, ScatteredPlace<config>, StepPlace<config>>;
  using Pages = StepPages<config>;
  // `k` and `v`: [sequences, length, kv_heads, d], or [pages, page, kv_heads, d] with `pages`, `pages_a_sequence` for each sequence.
  // Values are those of `part` of config.column_parts().
  KILN_MEMBER KeyCache(const C* k, const C* v, CacheScales scales, u32 length, const i32* pages, u32 pages_a_sequence, u32 part)
      : k_(reinterpret_cast<const char*>(k)), v_(reinterpret_cast<const char*>(v) + part * (config.wave_blocks() * 16 * config.value_bytes())), scales_(scales), pages_(pages),
        per_sequence_(config.page ? pages_a_sequence : length) {
    const u32 lane = platform::thread_id() % wave_size, quarter = lane / 16;
    const u32 piece_end = config.head_bytes() - 16, value_end = config.values() * config.cache_bits / 8 - config.value_bytes();
    tail_of_k_ = smaller((config.pieces() - 1) * 64 + quarter * 16, piece_end);
    tail_of_v_ = smaller((config.blocks() - 1) * 16 * config.value_bytes() + lane % 16 * config.value_bytes(), value_end);
  }
  KILN_MEMBER void move_to(u32 sequence, u32 head, u32 length) {
    length_ = length;
    head_ = head;
    if constexpr (config.page) table_ = pages_ + static_cast<u64>(sequence) * per_sequence_;
    else before_ = static_cast<u64>(sequence) * per_sequence_;
    offset_ = static_cast<u64>(head) * config.head_bytes();
  }
  KILN_MEMBER u32 keys() const { return config.page ? per_sequence_ * config.page : per_sequence_; } // that a sequence has room for

  // ---- a step that begins with `key`, which exists. Nothing is read beyond the last key: tiles and lanes without keys have the last one.

  KILN_MEMBER Pages pages(u32 key) const {
    Pages pages{};
    if constexpr (scattered) {
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        pages.k[t] = table_[key_of_k(key, t) / config.page];
#pragma unroll
        for (int i = 0; i < Pages::lookups; ++i) pages.v[t][i] = table_[key_of_v(key, t, i) / config.page];
      }
    } else if constexpr (config.page != 0) {
#pragma unroll
      for (int t = 0; t < tiles; ++t) pages.k[t] = platform::load_uniform(table_ + first_of(key, t) / config.page);
    }
    return pages;
  }
  KILN_MEMBER Place place(u32 key, const Pages& pages) const {
    Place place;
#pragma unroll
    for (int t = 0; t < tiles; ++t) {
      if constexpr (scattered) {
        place.k[t] = static_cast<u32>(pages.k[t]) * config.page + key_of_k(key, t) % config.page;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          place.v[t][i] = static_cast<u32>(pages.v[t][Pages::lookups == 1 ? 0 : i]) * config.page + key_of_v(key, t, i) % config.page;
      } else {
        const u32 first = first_of(key, t);
        if constexpr (config.page) place.first[t] = static_cast<u64>(static_cast<u32>(pages.k[t])) * config.page + first % config.page;
        else place.first[t] = before_ + first;
        const u64 at = place.first[t] * config.key_bytes() + offset_;
        place.k[t] = k_ + at;
        place.v[t] = v_ + at;
        place.after[t] = length_ - 1 - first;
      }
    }
    return place;
  }

  // Keeps the lookups of a place in front of what is loaded behind this. Without it those of the loop's first step sink into the loop's
  // guard, and a wait of the loop that means the oldest loads of every other step waits for all.
  KILN_MEMBER void pin_vgpr(Place& place) const {
    if constexpr (scattered) {
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        platform::pin_vgpr(place.k[t]);
#pragma unroll
        for (int i = 0; i < 4; ++i) platform::pin_vgpr(place.v[t][i]);
      }
    }
  }

  // Piece `p` of the lane's key of tile `t`: 16 bytes.
  KILN_MEMBER Word16 load_k(const Place& place, int t, int p) const {
    const bool tail = config.piece_tail() && p == config.pieces() - 1;
    const u32 column = tail ? tail_of_k_ : lane() / 16 * 16;
    if constexpr (scattered) {
      return platform::load_streamed(k_ + offset_ + static_cast<u64>(place.k[t]) * config.key_bytes() + (tail ? 0 : p * 64), column);
    } else {
      const u32 row = smaller(lane() % 16, place.after[t]) * config.key_bytes();
      return platform::load_streamed(place.k[t] + (tail ? 0 : p * 64), row + column);
    }
  }
  // The lane's 8 elements of block `b` of the value of key `i` of its four.
  KILN_MEMBER auto load_v(const Place& place, int t, int i, int b) const {
    const bool tail = config.block_tail() && b == config.blocks() - 1;
    const u32 in_block = tail ? 0 : b * 16 * config.value_bytes(), column = tail ? tail_of_v_ : lane() % 16 * config.value_bytes();
    const char* base;
    u32 offset = column;
    if constexpr (scattered) {
      base = v_ + offset_ + static_cast<u64>(place.v[t][i]) * config.key_bytes() + in_block;
    } else {
      base = place.v[t] + in_block;
      offset += smaller(lane() / 16 * 4 + i, place.after[t]) * config.key_bytes();
    }
    if constexpr (config.cache_bits == 16) return platform::load_streamed(base, offset);
    else return platform::load_streamed_half(base, offset);
  }

  // ---- scales: those of the lane's four keys of tile `t` if keys have their own, else the head's

  KILN_MEMBER Vec<f32, 4> load_k_scales(const Place& place, int t) const { return load_scales<config.k_scale>(scales_.k, place, t); }
  KILN_MEMBER Vec<f32, 4> load_v_scales(const Place& place, int t) const { return load_scales<config.v_scale>(scales_.v, place, t); }
  KILN_MEMBER f32 k_scale() const { return number_of_head<config.k_scale>(scales_.k, head_); }
  KILN_MEMBER f32 v_scale(u32 head) const { return number_of_head<config.v_scale>(scales_.v, head); }

private:
  KILN_DEVICE u32 lane() { return platform::thread_id() % wave_size; }
  KILN_MEMBER u32 first_of(u32 key, int t) const {
    return smaller(key + t * config.tile_keys, (length_ - 1) / config.tile_keys * config.tile_keys);
  }
  KILN_MEMBER u32 key_of_k(u32 key, int t) const { return smaller(key + t * config.tile_keys + lane() % 16, length_ - 1); }
  KILN_MEMBER u32 key_of_v(u32 key, int t, int i) const { return smaller(key + t * config.tile_keys + lane() / 16 * 4 + i, length_ - 1); }
  template <int of> KILN_MEMBER Vec<f32, 4> load_scales(const f32* scales, const Place& place, int t) const {
    constexpr u32 heads = of == KeyScale::key_and_head ? config.kv_heads : 1;
    if constexpr (of == KeyScale::key_and_head) scales += head_;
    Vec<f32, 4> four;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (scattered) four[i] = scales[static_cast<u64>(place.v[t][i]) * heads];
      else four[i] = (scales + place.first[t] * heads)[smaller(lane() / 16 * 4 + i, place.after[t]) * heads];
    }
    return four;
  }
  template <int of> KILN_DEVICE f32 number_of_head(const f32* scales, u32 head) {
    if constexpr (of == KeyScale::head) return scales[head];
    else if constexpr (of == KeyScale::all) return scales[0];
    else return 1;
  }

  const char *k_, *v_;
  CacheScales scales_;
  const i32 *pages_, *table_ = nullptr;
  u32 per_sequence_; // keys, or pages in the table, of a sequence
  u32 length_ = 0, head_ = 0, tail_of_k_, tail_of_v_;
  u64 before_ = 0, offset_ = 0; // keys of the sequences before; bytes of the heads before
};

} // namespace kiln
