// KeyCache: where the keys and values of a step lie, for contiguous and paged caches.
#pragma once
#include "attention_config.h"
#include "common/matrix.h"
#include "common/memory.h"

namespace kiln {

// The place of a step: for each tile of 16 keys the addresses of its first key and value, the same in all lanes, and how many keys follow
// that one in the sequence.
struct StepPlace {
  const char *k[2], *v[2];
  u32 after[2];
};

template <AttentionConfig config, class C> class KeyCache {
public:
  // `k` and `v`: [sequences, length, kv_heads, d], or [pages, page, kv_heads, d] with `pages`, `pages_a_sequence` for each sequence.
  KILN_MEMBER KeyCache(const C* k, const C* v, u32 length, const i32* pages, u32 pages_a_sequence)
      : k_(reinterpret_cast<const char*>(k)), v_(reinterpret_cast<const char*>(v)), pages_(pages), each_(config.page ? pages_a_sequence : length) {
    const u32 lane = platform::thread_id() % wave_size, quarter = lane / 16;
    const u32 piece_end = config.head_bytes() - 16, value_end = config.head_bytes() - config.value_bytes();
    tail_of_k_ = smaller((config.pieces() - 1) * 64 + quarter * 16, piece_end);
    tail_of_v_ = smaller((config.blocks() - 1) * 16 * config.value_bytes() + lane % 16 * config.value_bytes(), value_end);
  }
  KILN_MEMBER void move_to(u32 sequence, u32 head, u32 length) {
    length_ = length;
    if constexpr (config.page) {
      table_ = pages_ + static_cast<u64>(sequence) * each_;
      offset_ = static_cast<u64>(head) * config.head_bytes();
    } else {
      offset_ = static_cast<u64>(sequence) * each_ * config.key_bytes() + static_cast<u64>(head) * config.head_bytes();
    }
  }
  KILN_MEMBER u32 keys() const { return config.page ? each_ * config.page : each_; } // that a sequence has room for
  // For the step that begins with `key`, which exists. Nothing is read beyond the last key: tiles and lanes without keys have the last one.
  KILN_MEMBER StepPlace place(u32 key) const {
    StepPlace place;
    const u32 last = length_ - 1;
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const u32 first = smaller(key + t * config.tile_keys, last / config.tile_keys * config.tile_keys);
      u64 at = offset_;
      if constexpr (config.page) {
        const u32 page = static_cast<u32>(platform::load_uniform(table_ + first / config.page));
        at += (static_cast<u64>(page) * config.page + first % config.page) * config.key_bytes();
      } else {
        at += static_cast<u64>(first) * config.key_bytes();
      }
      place.k[t] = k_ + at;
      place.v[t] = v_ + at;
      place.after[t] = last - first;
    }
    return place;
  }
  // Piece `p` of the lane's key of tile `t`: 16 bytes.
  KILN_MEMBER Word16 load_k(const StepPlace& place, int t, int p) const {
    const u32 lane = platform::thread_id() % wave_size, row = smaller(lane % 16, place.after[t]) * config.key_bytes();
    const bool tail = config.piece_tail() && p == config.pieces() - 1;
    return platform::load_streamed(place.k[t] + (tail ? 0 : p * 64), row + (tail ? tail_of_k_ : lane / 16 * 16));
  }
  // The lane's 8 elements of block `b` of the value of key `i` of its four.
  KILN_MEMBER auto load_v(const StepPlace& place, int t, int i, int b) const {
    const u32 lane = platform::thread_id() % wave_size, row = smaller(lane / 16 * 4 + i, place.after[t]) * config.key_bytes();
    const bool tail = config.block_tail() && b == config.blocks() - 1;
    const char* const base = place.v[t] + (tail ? 0 : b * 16 * config.value_bytes());
    const u32 offset = row + (tail ? tail_of_v_ : lane % 16 * config.value_bytes());
    if constexpr (config.cache_bits == 16) return platform::load_streamed(base, offset);
    else return platform::load_streamed_half(base, offset);
  }

private:
  KILN_DEVICE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
  const char *k_, *v_;
  const i32 *pages_, *table_;
  u32 each_; // keys, or pages in the table, of a sequence
  u32 length_ = 0, tail_of_k_, tail_of_v_;
  u64 offset_ = 0;
};

} // namespace kiln
