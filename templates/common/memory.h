// Global memory: a lane's chunk as one wide access at (uniform base) + (32-bit lane offset) + (constant offset).
#pragma once
#include "common/convert.h"

namespace kiln {
namespace detail {

// An access of `bytes` bytes, at most 16, the widest that exists. Addresses are multiples of `alignment` or of `bytes`;
// less than four bytes is allowed, as the HSA run time puts the memory pipeline in unaligned mode (LLVM relies on it too).
template <int bytes> struct Word { using type = Vec<u32, bytes / 4>; };
template <> struct Word<1> { using type = u8; };
template <> struct Word<2> { using type = u16; };
template <> struct Word<4> { using type = u32; };
template <int bytes, int alignment>
struct __attribute__((packed, aligned(alignment < bytes ? alignment : bytes), may_alias)) Place {
  typename Word<bytes>::type value;
};

// The widest access that `bytes` bytes are made of.
constexpr int access_bytes(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes & -bytes;
}

} // namespace detail

// N elements of T at base + lane_offset + constant_offset bytes, a multiple of `alignment`.
template <class T, int N, int alignment = bytes_of<T>(N)>
KILN_DEVICE Chunk<T, N> load_chunk(const T* base, u32 lane_offset, int constant_offset) {
  constexpr int bytes = bytes_of<T>(N);
  constexpr int piece = detail::access_bytes(bytes);
  using W = typename detail::Word<piece>::type;
  using Place = detail::Place<piece, alignment>;
  struct Pieces { W at[bytes / piece]; } pieces;
  const char* const address = reinterpret_cast<const char*>(base) + lane_offset + constant_offset;
#pragma unroll
  for (int i = 0; i < bytes / piece; ++i) pieces.at[i] = reinterpret_cast<const Place*>(address + i * piece)->value;
  if constexpr (sizeof(Chunk<T, N>) == bytes) {
    return bit_cast<Chunk<T, N>>(pieces);
  } else { // fewer than four bytes in a register
    Chunk<T, N> chunk{};
#pragma unroll
    for (int i = 0; i < bytes / piece; ++i) chunk.word[i * piece / 4] |= static_cast<u32>(pieces.at[i]) << (8 * (i * piece % 4));
    return chunk;
  }
}

template <class T, int N, int alignment = bytes_of<T>(N)>
KILN_DEVICE void store_chunk(T* base, u32 lane_offset, int constant_offset, Chunk<T, N> chunk) {
  constexpr int bytes = bytes_of<T>(N);
  constexpr int piece = detail::access_bytes(bytes);
  using W = typename detail::Word<piece>::type;
  using Place = detail::Place<piece, alignment>;
  struct Pieces { W at[bytes / piece]; } pieces;
  if constexpr (sizeof(Chunk<T, N>) == bytes) {
    pieces = KILN_BIT_CAST(Pieces, chunk);
  } else {
#pragma unroll
    for (int i = 0; i < bytes / piece; ++i) pieces.at[i] = static_cast<W>(chunk.word[i * piece / 4] >> (8 * (i * piece % 4)));
  }
  char* const address = reinterpret_cast<char*>(base) + lane_offset + constant_offset;
#pragma unroll
  for (int i = 0; i < bytes / piece; ++i) reinterpret_cast<Place*>(address + i * piece)->value = pieces.at[i];
}

} // namespace kiln
