// Streams: a tensor as the chunks that one lane takes from it, and Rings that keep loads of it in flight.
#pragma once
#include "common/memory.h"

namespace kiln {

// Which chunk, and whether this lane has elements in it.
struct At {
  int chunk;
  bool active;
};

// A tensor of T seen from one lane: chunk c starts at base + lane_bytes + c * stride elements - centre_bytes.
template <class T, int N, int stride, int centre_bytes> struct Stream {
  using Element = T;
  T* base;          // the same in all lanes
  u32 lane_bytes;
  int columns_left; // columns from this lane's first one to the end of the row

  // A lane without elements in the last, partial chunk reads the row's last N instead: a valid place, and no branch.
  KILN_MEMBER auto load(int chunk, bool partial) const {
    const int beyond = columns_left - N - chunk * stride;
    const u32 lane = lane_bytes + (partial && beyond < 0 ? beyond * static_cast<int>(sizeof(T)) : 0);
    return load_chunk<__remove_cv(T), N>(base, lane, offset(chunk));
  }
  KILN_MEMBER void store(At at, Chunk<T, N> chunk) const {
    if (at.active) store_chunk<T, N>(base, lane_bytes, offset(at.chunk), chunk);
  }

private:
  KILN_DEVICE int offset(int chunk) { return chunk * stride * static_cast<int>(sizeof(T)) - centre_bytes; }
};

} // namespace kiln
