// Streams: a tensor as the chunks that one lane takes from it, and Rings that keep loads of it in flight.
#pragma once
#include "common/memory.h"

namespace kiln {

namespace detail {
template <class T> struct ByteOf { using type = char; };
template <class T> struct ByteOf<const T> { using type = const char; };
} // namespace detail
template <class T> using Bytes1 = typename detail::ByteOf<T>::type;

// A chunk of a lane, and how many of its elements exist. `partial` is whether lanes may differ in that: it is a constant
// where code is unrolled, so that whole chunks cost nothing.
struct At {
  int chunk;
  int count;
  bool partial;
  bool is_short = false; // the row has fewer elements than a chunk
};

namespace detail {
template <class C> struct Words { u32 word[sizeof(C) / sizeof(u32)]; };

// Moves words to the front by a number of places below 2 * `step`, a bit of the number after the other.
template <int step, int count> KILN_DEVICE void drop_first(u32 (&word)[count], u32 places) {
  if constexpr (step > 0) {
#pragma unroll
    for (int i = 0; i + step < count; ++i) { // numbers: of two variables `?:` makes an address, and then they lie in memory
      const u32 own = word[i], behind = word[i + step];
      word[i] = places & step ? behind : own;
    }
    drop_first<step / 2>(word, places);
  }
}

// `chunk` without its first `bytes` bytes: what is behind them comes to the front. Its last elements are undefined then.
template <int element_bytes, class C> KILN_DEVICE C without_first(C chunk, u32 bytes) {
  constexpr int count = sizeof(C) / sizeof(u32), word_bytes = sizeof(u32);
  auto words = KILN_BIT_CAST(Words<C>, chunk);
  drop_first<count / 2>(words.word, bytes / word_bytes);
  if constexpr (element_bytes < word_bytes) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const u64 pair = static_cast<u64>(words.word[i + 1 < count ? i + 1 : i]) << 32 | words.word[i];
      words.word[i] = static_cast<u32>(pair >> bytes % word_bytes * 8);
    }
  }
  return KILN_BIT_CAST(C, words);
}
} // namespace detail

// A tensor of T seen from one lane: chunk c starts at base + lane_bytes + c * stride elements - centre_bytes.
// In a partial chunk of a `ragged` tensor lanes may have some of their N elements; else they have all or none.
template <class T, int N, int stride, int centre_bytes, bool ragged> struct Stream {
  using Element = __remove_cv(T);
  static constexpr int size = sizeof(T);
  static constexpr int alignment = ragged ? size : bytes_of<Element>(N);
  using Slot = Chunk<Element, N>;
  T* base;          // the same in all lanes
  u32 lane_bytes;
  int columns_left; // elements from this lane's first one to the end of the row

  // In a partial chunk lanes that lack elements read the row's last N instead: a valid place, and no branch. What is theirs of those comes
  // to the front; their other elements are undefined.
  KILN_MEMBER Chunk<Element, N> load(At at) const {
    if (!at.partial) return load_chunk<Element, N, alignment>(base, lane_bytes, offset(at.chunk));
    const int beyond = columns_left - N - at.chunk * stride;
    const u32 back = beyond < 0 ? static_cast<u32>(bytes_of<Element>(beyond)) : 0u;
    if constexpr (ragged && N > 1) {
      if (at.is_short) return load_each(at);
      constexpr int chunk_bytes = bytes_of<Element>(N); // the row's last N may begin in front of the first lane's: no offset is below 0
      const auto last = load_chunk<Element, N, alignment>(base, lane_bytes + back + chunk_bytes, offset(at.chunk) - chunk_bytes);
      return detail::without_first<size>(last, 0u - back);
    } else {
      return load_chunk<Element, N, alignment>(base, lane_bytes + back, offset(at.chunk));
    }
  }
  KILN_MEMBER Slot taken(Slot slot) const { return slot; }
  KILN_MEMBER void store(At at, Chunk<Element, N> chunk) const {
    if (!at.partial || at.count == N) store_chunk<Element, N, alignment>(base, lane_bytes, offset(at.chunk), chunk);
    else if constexpr (ragged) store_some(at, chunk);
  }

private:
  KILN_DEVICE int offset(int chunk) { return bytes_of<Element>(chunk * stride) - centre_bytes; }
  // From a row that has no N elements: those behind its end are its last one.
  KILN_MEMBER Chunk<Element, N> load_each(At at) const {
    const int last = columns_left - 1 - at.chunk * stride;
    Chunk<Element, N> chunk{};
#pragma unroll
    for (int i = 0; i < N; ++i)
      set(chunk, i, load_chunk<Element, 1, size>(base, lane_bytes + static_cast<u32>((i < last ? i : last) * size), offset(at.chunk)));
    return chunk;
  }
  KILN_MEMBER void store_some(At at, Chunk<Element, N> chunk) const {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < at.count) store_chunk<Element, 1, size>(base, lane_bytes, offset(at.chunk) + i * size, get(chunk, i));
  }
  KILN_DEVICE void set(Chunk<Element, N>& chunk, int i, Chunk<Element, 1> one) {
    if constexpr (is_byte<Element>) chunk.word[i / 4] |= one.word[0] << (8 * (i % 4));
    else chunk[i] = one[0];
  }
  KILN_DEVICE Chunk<Element, 1> get(Chunk<Element, N> chunk, int i) {
    if constexpr (is_byte<Element>) return {{chunk.word[i / 4] >> (8 * (i % 4)) & 0xff}};
    else return chunk[i];
  }
};

// A stream with room for `ahead` chunks whose loads are in flight.
template <class S, int N, int ahead> struct Ring {
  static constexpr bool refills = true;
  S stream;
  typename S::Slot slot[ahead]; // as loaded; the stream makes the chunk of it when it is taken
  KILN_MEMBER auto take(At at) { return stream.taken(slot[at.chunk % ahead]); }
  KILN_MEMBER void refill(At at) { slot[at.chunk % ahead] = stream.load(at); }
};

// Chunks 0 to `chunks` - 1 of a lane in order: body(at, chunk of each source). A ring's slot is used first and reloaded
// then, with barriers for the scheduler between: this alone keeps `ahead` loads in flight all the time.
// `space.at(chunk)` says what the lane has of a chunk.
template <int chunks, int ahead, bool unrolled, class Space, class Body, class... Sources>
KILN_DEVICE void pass_chunks(const Space& space, Body& body, Sources&... sources) {
  constexpr bool any_ring = (false || ... || Sources::refills);
  const auto step = [&](int chunk, bool reload) KILN_LAMBDA {
    body(space.at(chunk), sources.take(space.at(chunk))...);
    if (reload) {
      if constexpr (any_ring) platform::schedule_barrier();
      (sources.refill(space.at(chunk + ahead)), ...);
      if constexpr (any_ring) platform::schedule_barrier();
    }
  };
  if constexpr (unrolled) {
    if constexpr (any_ring) platform::schedule_barrier();
#pragma unroll
    for (int c = 0; c < chunks; ++c) step(c, c + ahead < chunks);
  } else {
    constexpr int whole = (chunks - 1) / ahead - 1, turns = whole > 0 ? whole : 0; // of the ring, without the last chunk
#pragma nounroll
    for (int turn = 0; turn < turns; ++turn)
#pragma unroll
      for (int i = 0; i < ahead; ++i) step(turn * ahead + i, true);
    constexpr int rest = chunks - turns * ahead;
#pragma unroll
    for (int i = 0; i < rest; ++i) step(turns * ahead + i, i + ahead < rest);
  }
}

} // namespace kiln
