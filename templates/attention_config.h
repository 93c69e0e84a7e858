// AttentionConfig: how workgroups share the keys of all sequences of a batch. Shared by the host and the device.
//
// The work is cut into steps: 32 keys (16 of rows of over 256 elements, and of over 192 with small pages) of one KV head of one sequence, for up to 64 rows of q (32 with heads of over 128 elements). Steps are numbered along the keys first, then the heads, then the
// sequences, and every workgroup takes a contiguous run of them, equal but for one step, whatever the lengths are. A run is cut into
// segments where heads end. The four waves of a workgroup share the steps of a segment.
#pragma once
#include "stream_k_config.h"

namespace kiln {

// What of a cache of 8 bits has a scale of its own.
struct KeyScale {
  enum Of : int { none, all, head, key, key_and_head };
};

struct AttentionConfig {
  int heads = 0, kv_heads = 0; // of q; of k and v
  int tokens = 1;              // query tokens of a sequence
  int d = 0;                   // elements of a head of q and k
  int value_d = 0;             // of v; 0: as many. Fewer: v is the first ones of each key
  int q_bits = 16, cache_bits = 16;
  int k_scale = 0, v_scale = 0; // KeyScale::Of
  int page = 0;                // keys of a page; 0: the keys of a sequence lie one after the other
  int workgroups = 1;          // of the grid, whatever the sequences are
  int per_cu = 1;              // workgroups that a CU has room for: with 2 a wave has half of the registers
  int tiles = 1;               // of 16 rows of q that a segment has; further rows are other segments, which read the keys again
  int vec = 4;                 // consecutive elements that a lane has, of scores and of the epilogue
  int parts = 0;               // batch-invariant: the most parts of an item's keys, whose number and places follow from its length alone; 0: runs decide

  static constexpr int waves = 4, tile_keys = 16;
  constexpr int step_keys() const { return d > 256 || (d > 192 && small_pages()) ? 16 : 32; } // more do not fit the registers of a wave
  constexpr int key_tiles() const { return step_keys() / tile_keys; }
  constexpr int values() const { return value_d ? value_d : d; } // elements of a head of v, and of the result
  constexpr int threads() const { return waves * wave_size; }
  constexpr int group() const { return heads / kv_heads; } // heads of q that read one head of k and v
  constexpr int rows() const { return group() * tokens; }  // of q that meet a head of k
  constexpr int row_tiles() const { return ceil_div(rows(), 16); }
  constexpr int row_blocks() const { return ceil_div(row_tiles(), tiles); } // segments that these rows make
  constexpr int items() const { return kv_heads * row_blocks(); }          // of a sequence, each of which is finished at once
  constexpr int head_bytes() const { return d * cache_bits / 8; }  // of a key's head
  constexpr int key_bytes() const { return kv_heads * head_bytes(); }
  // Loads of keys: 16 lanes have a key each, four quarters of the wave 16 bytes each of 64 bytes of a head.
  constexpr int pieces() const { return ceil_div(head_bytes(), 64); }
  constexpr bool piece_tail() const { return head_bytes() % 64 != 0; }
  constexpr int q_words() const { return pieces() * q_bits / cache_bits; } // of 16 bytes, that a lane has of a row of q
  // Rows of q that do not fit the registers beside keys, values and sums lie in LDS, once for all waves.
  constexpr bool q_in_lds() const { return d > 256; }
  constexpr int q_lds_words() const { return q_in_lds() ? tiles * q_words() : 1; } // of 16 bytes per lane
  // Loads of values: a quarter of the wave has a key, each lane 8 elements of a block of 128.
  constexpr int blocks() const { return ceil_div(values(), 128); }
  // The sums of wide values do not fit the registers of a wave: two waves have the same keys, and half of the columns each.
  constexpr int column_parts() const { return d > 256 ? 2 : 1; }
  constexpr int key_waves() const { return waves / column_parts(); } // that have keys of their own
  constexpr int wave_blocks() const { return blocks() / column_parts(); }
  constexpr bool block_tail() const { return values() % 128 != 0; }
  constexpr int value_bytes() const { return cache_bits; } // of a load of a lane: 8 elements
  constexpr int k_loads() const { return key_tiles() * pieces(); }
  constexpr int v_loads() const { return step_keys() / 4 * wave_blocks(); }
  // The keys of a tile lie in several pages: each lane looks its own up.
  constexpr bool small_pages() const { return page != 0 && page % tile_keys != 0; }
  constexpr bool scales_keys() const { return k_scale >= KeyScale::key; }     // each key of k
  constexpr bool scales_values() const { return v_scale >= KeyScale::key; }
  constexpr int value_lookups() const { return page % 4 == 0 ? 1 : 4; } // for four keys in sequence
  // Units of 16 rows by 64 columns, in which the waves' sums meet in LDS: half of a block each.
  constexpr int units() const { return tiles * blocks() * 2; }
  constexpr int lds_row() const { return 64 + 4; }
  constexpr int lds_bytes() const { return waves * 16 * lds_row() * 4 + waves * tiles * 16 * 8 + q_lds_words() * wave_size * 16 + 16; }
  // What a workgroup publishes of a head that it has a part of: sums, and for each row what they are relative to and the sum of weights.
  constexpr int lane_numbers() const { return units() * 4 + tiles * 2; } // of a lane, whose row is that of 16
  constexpr int partial_floats() const { return units() * threads() * 4 + tiles * 16 * 2; }
  // Parts that are collected at a time: four where that is 40 numbers of a lane. Two of 18 made LLVM 21 set VGPRs aside in the loop over keys.
  constexpr int parts_at_a_time() const { return lane_numbers() > 10 ? 1 : 4; }
  // How many of the workgroups share `steps` steps of `items` items. Parts that are collected take time too: by the simulation an item of n
  // steps is done first in about sqrt(n) parts, `best`, where there are so many workgroups: `most` an item (docs/attention.md). Items are cut
  // into whole parts each, as many as are collected in whole rounds, where that keeps two thirds of the workgroups: a run that crosses items
  // finishes two. Sixteen items or more of up to 16 steps are whole: what collecting takes is more than what is shared.
  constexpr unsigned active_workgroups(unsigned steps, unsigned items, float best, float most) const {
    const unsigned all = static_cast<unsigned>(workgroups), at_a_time = static_cast<unsigned>(parts_at_a_time());
    const bool are_whole = items >= 16 && steps <= 16 * items;
    const float number = are_whole ? 1 : best < most ? best : most;
    const unsigned any = static_cast<unsigned>(number * static_cast<float>(items)), whole = static_cast<unsigned>(number);
    const auto fits = [&](unsigned each) { return each != 0 && each * items <= all && 3 * each * items >= 2 * any; };
    const unsigned rounds = (whole + at_a_time / 2) / at_a_time * at_a_time;
    const unsigned active = fits(rounds) ? rounds * items : fits(whole) ? whole * items : any < all ? any : all;
    return active > steps ? (steps != 0 ? steps : 1) : active != 0 ? active : 1;
  }
  // Parts of an item of `steps` steps, equal but for one step, with two steps a wave at least.
  constexpr unsigned parts_of(unsigned steps) const {
    const unsigned least = 2 * waves, most = static_cast<unsigned>(parts);
    return steps / least < 1 ? 1 : steps / least < most ? steps / least : most;
  }
  // A workgroup keeps each part of the item that it begins in, and one of the item that it ends in: gemm/stream_k.h.
  constexpr StreamKSpace shared() const { return {.workgroups = workgroups, .numbers = partial_floats(), .places = parts > 2 ? parts : 2}; }
  constexpr long long workspace_bytes() const { return workgroups == 1 ? 0 : shared().bytes(); }

  bool operator==(const AttentionConfig&) const = default;
};

// What attention takes: elements of a head; those of the one latent head, and of its values; heads of q, and rows of q that a head of keys meets.
inline constexpr int attention_head_sizes[] = {64, 80, 96, 128, 192, 256}, attention_latent = 576, attention_latent_values = 512;
inline constexpr int attention_max_heads = 1024, attention_max_rows = 64;

// nullptr, or what is wrong with it. Serves as the host's error text and the device's static_assert.
constexpr const char* why_invalid(const AttentionConfig& c) {
  if (c.kv_heads < 1 || c.heads < c.kv_heads || c.heads % c.kv_heads || c.heads > attention_max_heads) return "heads must be a multiple of kv_heads, at most 1024";
  if (c.tokens < 1 || c.rows() > attention_max_rows) return "heads of a group times tokens must be from 1 to 64";
  if (const bool latent = c.d == attention_latent && c.value_d == attention_latent_values; !latent) {
    bool offered = false;
    for (const int d : attention_head_sizes) offered |= c.d == d;
    if (!offered) return "d must be 64, 80, 96, 128, 192 or 256, or 576 with values of 512";
    if (c.value_d != 0) return "values must have d elements, or 512 of 576";
  }
  if (c.q_bits != 16) return "q_bits must be 16";
  if (c.cache_bits != 8 && c.cache_bits != 16) return "cache_bits must be 8 or 16";
  if (c.k_scale < KeyScale::none || c.k_scale > KeyScale::key_and_head || c.v_scale < KeyScale::none || c.v_scale > KeyScale::key_and_head) return "k_scale and v_scale must be from 0 to 4";
  if ((c.k_scale || c.v_scale) && c.cache_bits != 8) return "scales are for caches of 8 bits";
  if (const bool small = c.page == 1 || c.page == 2 || c.page == 4 || c.page == 8; c.page < 0 || (c.page % 16 && !small) || c.page > 1 << 16)
    return "page must be 1, 2, 4, 8 or a multiple of 16 up to 65536, or 0 for a contiguous cache";
  if (c.workgroups < 1 || c.workgroups > 1 << 16) return "workgroups must be from 1 to 65536";
  if (c.per_cu < 1 || c.per_cu > 2) return "per_cu must be 1 or 2";
  if (c.tiles < 1 || c.tiles > (c.d <= 128 ? 4 : 2)) return "tiles must be from 1 to 4, and at most 2 with heads of more than 128 elements";
  if (c.vec != 4) return "vec must be 4";
  if (c.parts < 0 || c.parts > 16 || (c.parts > 0 && c.workgroups < 2)) return "parts must be from 1 to 16, on two workgroups or more, or 0";
  return nullptr;
}

} // namespace kiln
