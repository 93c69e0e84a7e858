// TileChunk: `vec` finished elements of one row of a result, and what an epilogue does with them.
#pragma once
#include "common/math.h"
#include "common/stream.h"

namespace kiln {

// A value that is in registers already, where a pass takes a stream.
template <class V> struct InRegisters {
  V value;
  KILN_MEMBER V load(At) const { return value; }
};

// For rows of `n` elements. Lanes with the columns of a row one after the other are neighbours.
template <int n, int vec> class TileChunk {
  static constexpr bool ragged = n % vec != 0;

public:
  KILN_MEMBER TileChunk(u32 row, u32 column, u32 rows) : row_(row), column_(column) {
    const int left = n - static_cast<int>(column);
    count_ = row >= rows ? 0 : left >= vec ? vec : left > 0 ? left : 0;
  }
  KILN_MEMBER u32 index() const { return row_; } // of the row
  // An [m, n] tensor whose rows lie `row_stride` elements apart.
  template <class T> KILN_MEMBER auto full(T* tensor, u64 row_stride = n) const {
    return stream(tensor, row_ * row_stride + column_);
  }
  template <class T> KILN_MEMBER auto columns(T* tensor) const { return stream(tensor, column_); }
  template <class T> KILN_MEMBER auto scalar(const T* tensor) const { return load_one(tensor); }
  // The element of this row in an [m, 1] tensor; the first one's where the row does not exist.
  template <class T> KILN_MEMBER auto of_row(const T* tensor, u64 row_stride = 1) const {
    return load_one(tensor + (count_ > 0 ? row_ : 0) * row_stride);
  }
  // The element of this lane's group of columns in an [m, n / group] tensor, or in one with another stride.
  template <int group, class T> KILN_MEMBER auto of_group(At, const T* tensor, u64 row_stride = n / group) const {
    return load_one(tensor + row_ * row_stride + column_ / group);
  }
  template <int group, class T, class V> KILN_MEMBER void store_of_group(At, T* tensor, V value, u64 row_stride = n / group) const {
    static_assert(n % group == 0, "a tile has whole groups");
    const auto element = to<T>(Vec<V, 1>(value));
    if (column_ % group == 0) store_chunk<T, 1>(tensor + row_ * row_stride + column_ / group, 0, 0, element);
  }
  // Calls body(at, chunk of each source) where the chunk exists.
  template <class Body, class... Sources> KILN_MEMBER void pass(Body body, Sources... sources) const {
    if (const At at{0, count_, ragged, n < vec}; count_ > 0) body(at, sources.load(at)...);
  }

  // A chunk of a stream, which has to exist, for a pass that comes later.
  template <class S> KILN_MEMBER auto ahead(S stream) const {
    return InRegisters<typename S::Slot>{stream.load(At{0, count_, ragged, n < vec})};
  }

private:
  template <class T> KILN_MEMBER auto stream(T* tensor, u64 elements) const {
    using Element = __remove_cv(T);
    T* const first = reinterpret_cast<T*>(reinterpret_cast<Bytes1<T>*>(tensor) + bytes_of<Element>(elements));
    return Stream<T, vec, 0, 0, ragged>{first, 0, n - static_cast<int>(column_)};
  }
  template <class T> KILN_MEMBER auto load_one(const T* from) const { return only_element<__remove_cv(T)>(load_chunk<__remove_cv(T), 1>(from, 0, 0)); }

  u32 row_, column_;
  int count_;
};

} // namespace kiln
