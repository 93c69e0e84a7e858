// Values of N elements that one lane holds: Chunk and Mask beside Vec, and map over them.
#pragma once
#include "common/instructions.h"

namespace kiln {

// N one-byte elements, four to a register.
template <class T, int N> struct Bytes {
  static constexpr int words = (N + 3) / 4;
  u32 word[words];
};

// Two e2m1 numbers share a byte: eight to a register.
template <class T> inline constexpr bool is_packed = false;
template <> inline constexpr bool is_packed<e2m1> = true;
template <int N> struct Bytes<e2m1, N> {
  static constexpr int words = (N + 7) / 8;
  u32 word[words];
};
// What `elements` of T take in memory.
template <class T, class Count> KILN_DEVICE constexpr Count bytes_of(Count elements) {
  if constexpr (is_packed<T>) return elements / 2;
  else return elements * static_cast<Count>(sizeof(T));
}

template <class T> inline constexpr bool is_byte = sizeof(T) == 1;
template <class T, int N, bool byte> struct ChunkOf { using type = Vec<T, N>; };
template <class T, int N> struct ChunkOf<T, N, true> { using type = Bytes<T, N>; };
template <class T, int N> using Chunk = typename ChunkOf<T, N, is_byte<T>>::type;

// N truth values, as numbers: clang passes a struct of one bool as i1 and stores it through memory. The optimiser still sees
// comparisons, and keeps them as lane masks.
template <int N> struct Mask {
  u32 at[N];
};

// One of them, where a lambda keeps it: for the same reason.
struct Truth {
  u32 value;
  KILN_MEMBER Truth(bool truth) : value(truth) {}
  KILN_MEMBER operator bool() const { return value != 0; }
};

// How many elements a value has: 0 for a scalar.
template <class V> inline constexpr int width = 0;
template <class T, int N> inline constexpr int width<T __attribute__((ext_vector_type(N)))> = N;
template <int N> inline constexpr int width<Mask<N>> = N;
template <class T, int N> inline constexpr int width<Bytes<T, N>> = N;

template <class V> KILN_DEVICE auto element(V v, int i) {
  if constexpr (width<V> == 0) return v;
  else return v[i];
}
template <int N> KILN_DEVICE bool element(Mask<N> m, int i) { return m.at[i] != 0; }

template <class... V> constexpr int common_width() {
  int widest = 0;
  ((widest = width<V> > widest ? width<V> : widest), ...);
  return widest;
}

template <class T, int N> struct Gather { using type = Vec<T, N>; };
template <int N> struct Gather<bool, N> { using type = Mask<N>; };

// f of each element; scalars stand for all elements.
template <class F, class... V> KILN_DEVICE auto map(F f, V... v) {
  constexpr int n = common_width<V...>();
  if constexpr (n == 0) {
    return f(v...);
  } else {
    using T = decltype(f(element(v, 0)...));
    typename Gather<T, n>::type result;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if constexpr (__is_same(T, bool)) result.at[i] = f(element(v, i)...);
      else result[i] = f(element(v, i)...);
    }
    return result;
  }
}

} // namespace kiln
