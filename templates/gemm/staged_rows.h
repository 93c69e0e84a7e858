// StagedRows: rows of A as a workgroup multiplies them, quantised once into LDS for the steps of a segment.
#pragma once
#include "gemm/operands/mx_numbers.h"
#include "gemm/segment.h"
#include "gemm_config.h"

namespace kiln {

// A row's part in the segment is cut into pieces of 16 elements per lane, which the waves take in turn, row after row.
template <GemmConfig config> class StagedRows {
  static constexpr u32 of_step = config.step_bytes() / 16, exist = config.row_bytes() / 16; // chunks of 16 elements of a row
  static constexpr u32 pieces = config.staged_pieces(), of_wave = ceil_div(config.staged_pieces() * config.rows, config.waves);
  static constexpr bool has_weights = config.a.norm_parts > 0;
  struct Words {
    Word16 a[2], weights[2];
  };
  struct Place {
    u32 row, chunk;
  };

public:
  // What this lane loads of a segment's rows, in flight.
  struct Loaded {
    Words of[of_wave];
  };

  static KILN_MEMBER char* in_lds() {
    static __shared__ Word16 memory[config.rows * config.staged_row() / 16];
    return reinterpret_cast<char*>(memory);
  }
  static KILN_MEMBER Word16 take(u32 at) { return *reinterpret_cast<const Word16*>(in_lds() + at); }

  // Asks for what put_loaded needs. `weights`: with norm_parts, of A's columns.
  template <class A> static KILN_MEMBER Loaded load_rows(const A* a, u32 rows, const void* weights, const GemmSegment& segment) {
    Loaded loaded;
#pragma unroll
    for (u32 i = 0; i < of_wave; ++i)
      if (const Place place = place_of(i); place.row < rows) loaded.of[i] = load(a, weights, place, segment);
    return loaded;
  }
  // factor_of(row) is what row `row` of A is multiplied by. Zeros lie beyond the end of k. A barrier has to follow.
  template <class B, class A, class FactorOf>
  static KILN_MEMBER void put_loaded(const Loaded& loaded, u32 rows, const GemmSegment& segment, FactorOf factor_of) {
#pragma unroll
    for (u32 i = 0; i < of_wave; ++i)
      if (const Place place = place_of(i); place.row < rows) store<B, A>(loaded.of[i], place, segment, factor_of(place.row));
  }
  // Both at once, for rows that registers do not hold.
  template <class B, class A, class FactorOf>
  static KILN_MEMBER void put(const A* a, u32 rows, const void* weights, const GemmSegment& segment, FactorOf factor_of) {
#pragma unroll 4
    for (u32 i = 0; i < of_wave; ++i) {
      const Place place = place_of(i);
      if (place.row >= rows) break;
      store<B, A>(load(a, weights, place, segment), place, segment, factor_of(place.row));
    }
  }

private:
  KILN_DEVICE Place place_of(u32 i) {
    const u32 piece = platform::uniform(platform::thread_id() / wave_size) + i * config.waves;
    return {piece / pieces, piece % pieces * wave_size + platform::thread_id() % wave_size};
  }
  KILN_DEVICE bool exists(u32 chunk, const GemmSegment& segment) { return !config.k_tail() || segment.first * of_step + chunk < exist; }
  template <class A> KILN_DEVICE Words load(const A* a, const void* weights, Place place, const GemmSegment& segment) {
    // From the start of a row of A; of its last chunk where there is none.
    const u32 at = smaller(segment.first * of_step + place.chunk, exist - 1) * 32;
    const char* const row = reinterpret_cast<const char*>(a) + static_cast<u64>(place.row) * config.a_row_bytes();
    Words words;
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      words.a[w] = platform::load_word(row + w * 16, at);
      if constexpr (has_weights) words.weights[w] = platform::load_word(static_cast<const char*>(weights) + w * 16, at);
    }
    return words;
  }
  template <class B, class A> KILN_DEVICE void store(const Words& words, Place place, const GemmSegment& segment, f32 factor) {
    Word16 bytes;
    if constexpr (has_weights) bytes = quantised<B, A>(words.a[0], words.a[1], factor, words.weights[0], words.weights[1]);
    else bytes = quantised<B, A>(words.a[0], words.a[1], factor);
#pragma unroll
    for (int i = 0; i < 4; ++i) bytes[i] = exists(place.chunk, segment) ? bytes[i] : 0u;
    if (place.chunk < segment.count * of_step) *reinterpret_cast<Word16*>(in_lds() + place.row * config.staged_row() + place.chunk * 16) = bytes;
  }
};

} // namespace kiln
