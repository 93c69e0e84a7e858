// Streams: a tensor as the chunks that one lane takes from it, and Rings that keep loads of it in flight.
#pragma once
#include "common/memory.h"

namespace kiln {

// Which chunk, and whether this lane has elements in it.
struct At {
  int chunk;
  bool active;
};
// The same where only the first `count` elements of the lane's chunk exist (the end of a flat tensor).
struct PartialAt {
  int chunk;
  bool active;
  int count;
};

// A tensor of T seen from one lane: chunk c starts at base + lane_bytes + c * stride elements - centre_bytes.
template <class T, int N, int stride, int centre_bytes> struct Stream {
  using Element = __remove_cv(T);
  static constexpr int size = sizeof(T);
  T* base;          // the same in all lanes
  u32 lane_bytes;
  int columns_left; // elements from this lane's first one to the end of the row

  // A lane without elements in the last, partial chunk reads the row's last N instead: a valid place, and no branch.
  KILN_MEMBER Chunk<Element, N> load(int chunk, bool partial) const {
    const int beyond = columns_left - N - chunk * stride;
    const u32 lane = lane_bytes + (partial && beyond < 0 ? static_cast<u32>(beyond * size) : 0u);
    return load_chunk<Element, N>(base, lane, offset(chunk));
  }
  KILN_MEMBER Chunk<Element, N> load(PartialAt at) const {
    Chunk<Element, N> chunk{};
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < at.count) set(chunk, i, load_chunk<Element, 1>(base, lane_bytes, offset(at.chunk) + i * size));
    return chunk;
  }
  KILN_MEMBER void store(At at, Chunk<Element, N> chunk) const {
    if (at.active) store_chunk<Element, N>(base, lane_bytes, offset(at.chunk), chunk);
  }
  KILN_MEMBER void store(PartialAt at, Chunk<Element, N> chunk) const {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < at.count) store_chunk<Element, 1>(base, lane_bytes, offset(at.chunk) + i * size, get(chunk, i));
  }

private:
  KILN_DEVICE int offset(int chunk) { return chunk * stride * size - centre_bytes; }
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
  Chunk<typename S::Element, N> slot[ahead];
  KILN_MEMBER auto take(At at) const { return slot[at.chunk % ahead]; }
  KILN_MEMBER void refill(int chunk, bool partial) { slot[chunk % ahead] = stream.load(chunk, partial); }
};

// Chunks 0 to `chunks` - 1 of a lane in order: body(at, chunk of each source). A ring's slot is used first and reloaded
// then, with barriers for the scheduler between: this alone keeps `ahead` loads in flight all the time.
// `space` says where a chunk is: space.at(chunk), space.is_partial(chunk).
template <int chunks, int ahead, bool unrolled, class Space, class Body, class... Sources>
KILN_DEVICE void pass_chunks(const Space& space, Body& body, Sources&... sources) {
  constexpr bool any_ring = (false || ... || Sources::refills);
  const auto step = [&](int chunk, bool reload) KILN_LAMBDA {
    body(space.at(chunk), sources.take(space.at(chunk))...);
    if (reload) {
      if constexpr (any_ring) platform::schedule_barrier();
      (sources.refill(chunk + ahead, space.is_partial(chunk + ahead)), ...);
      if constexpr (any_ring) platform::schedule_barrier();
    }
  };
  if constexpr (unrolled) {
    if constexpr (any_ring) platform::schedule_barrier();
#pragma unroll
    for (int c = 0; c < chunks; ++c) step(c, c + ahead < chunks);
  } else {
    constexpr int turns = (chunks - ahead) / ahead; // whole turns of the ring with a reload behind each use
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
