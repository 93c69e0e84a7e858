// Views: chunks that a lane reads from other rows and columns than its own, and rows that an index names.
#pragma once
#include "rowwise.h"

namespace kiln {

// The row that an index names; none when the index is negative, then row is 0. Rows beyond 2^31 - 1 are that one.
struct NamedRow {
  u32 row;
  bool is_named;
  // For a tensor of `rows` rows: the last one for those beyond it, and whether it is one of them.
  KILN_MEMBER u32 clamped_to(u32 rows) const { return row < rows ? row : rows - 1; }
  KILN_MEMBER bool is_named_below(u32 rows) const { return is_named && row < rows; }
};

template <class T> KILN_DEVICE NamedRow named_row(T index) {
  if constexpr (sizeof(T) == 8) {
    const u32 low = index > 0x7fffffffll ? 0x7fffffffu : static_cast<u32>(index);
    return {index < 0 ? 0u : low, index >= 0};
  } else {
    return {index < 0 ? 0u : static_cast<u32>(index), index >= 0};
  }
}

// Chunks of N elements of a row in memory, seen from one lane whose chunks are `stride` columns apart. Rows are no ragged ones: a lane
// has all of a chunk or nothing. Zeros unless `exists`.
template <class T, int N, int stride, int cols, ColumnMap map, Rows rows> struct ViewStream {
  using Element = __remove_cv(T);
  static constexpr int size = sizeof(T);
  static constexpr int loaded = map.repeat >= N ? 1 : N / map.repeat; // of different elements
  using Slot = Chunk<Element, loaded>;
  T* base;   // of the row
  u32 first; // the column of this lane's first chunk
  bool exists;

  KILN_MEMBER Slot load(At at) const {
    if constexpr (rows == Rows::own) return exists ? load_any(at) : Slot{};
    else return load_any(at);
  }
  KILN_MEMBER Slot load_any(At at) const {
    if constexpr (map.shift != 0 && N < cols) { // one column at a time
      const u32 from = first + static_cast<u32>(at.chunk * stride) - map.shift;
      return from < static_cast<u32>(cols) ? load_chunk<Element, loaded>(base, from * size, 0) : Slot{};
    }
    if constexpr (map.is_even(stride)) {
      if (!at.partial) return load_chunk<Element, loaded>(base, map.of(first) * size, at.chunk * map.step(stride) * size);
    }
    // A lane without elements reads the row's last ones: a valid place, and no branch.
    const u32 column = !at.partial || at.count > 0 ? first + static_cast<u32>(at.chunk * stride) : static_cast<u32>(cols - N);
    return load_chunk<Element, loaded>(base, map.of(column) * size, 0);
  }
  KILN_MEMBER Chunk<Element, N> taken(Slot slot) const {
    if constexpr (rows != Rows::named) {
      return repeated(slot);
    } else if constexpr (sizeof(Slot) % 4 == 0) { // by registers, before 16-bit elements become f32
      struct Words { u32 at[sizeof(Slot) / 4]; };
      auto words = KILN_BIT_CAST(Words, slot);
#pragma unroll
      for (u32& word : words.at) word = exists ? word : 0;
      return repeated(bit_cast<Slot>(words));
    } else {
      return repeated(exists ? slot : Slot{});
    }
  }

private:
  // The elements of a chunk in their places.
  KILN_DEVICE Chunk<Element, N> repeated(Slot slot) {
    if constexpr (map.shift != 0 && N > 1) {
      Chunk<Element, N> chunk{};
#pragma unroll
      for (int i = map.shift > 0 ? map.shift : 0; i < N && i - map.shift < N; ++i) {
        const int from = i - map.shift;
        if constexpr (is_byte<Element>) chunk.word[i / 4] |= (slot.word[from / 4] >> (8 * (from % 4)) & 0xff) << (8 * (i % 4));
        else chunk[i] = slot[from];
      }
      return chunk;
    } else if constexpr (loaded == N) {
      return slot;
    } else if constexpr (is_byte<Element>) {
      Chunk<Element, N> chunk{};
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const int from = i * loaded / N;
        chunk.word[i / 4] |= (slot.word[from / 4] >> (8 * (from % 4)) & 0xff) << (8 * (i % 4));
      }
      return chunk;
    } else {
      Chunk<Element, N> chunk;
#pragma unroll
      for (int i = 0; i < N; ++i) chunk[i] = slot[i * loaded / N];
      return chunk;
    }
  }
};

// A row of an output that some index names. Everything is computed before the index is looked at: its load would else be waited for
// before all others are even issued.
template <class S> struct ScatteredRow {
  S stream;
  bool exists;
  template <class C> KILN_MEMBER void store(At at, C chunk) const {
    const C computed = platform::pin_computed(chunk);
    if (exists) stream.store(at, computed);
  }
};

template <RowwiseConfig config> template <class T> KILN_MEMBER NamedRow Row<config>::named(const T* index, u64 row_stride) const {
  const T* const at = index + row_ * row_stride;
  return named_row(load_chunk<T, 1>(at, row_in_block_ * static_cast<u32>(row_stride) * static_cast<u32>(sizeof(T)), 0)[0]);
}
template <RowwiseConfig config> template <ColumnMap map, Rows rows, class T> KILN_MEMBER auto Row<config>::view(T* tensor, bool exists) const {
  return ViewStream<T, vec, stride, config.cols, map, rows>{tensor, lane_column(), exists};
}
template <RowwiseConfig config> template <class T> KILN_MEMBER auto Row<config>::scattered(T* tensor, bool exists) const {
  const auto row = full(tensor, 0);
  return ScatteredRow<__remove_cv(decltype(row))>{row, exists};
}
template <RowwiseConfig config> KILN_MEMBER auto Row<config>::integer_columns_at(At at) const -> Vec<i32, vec> {
  Vec<i32, vec> columns;
#pragma unroll
  for (int i = 0; i < vec; ++i) columns[i] = static_cast<i32>(column_of(at.chunk) + static_cast<u32>(i));
  return columns;
}
template <RowwiseConfig config> template <ColumnMap map> KILN_MEMBER auto Row<config>::columns_at(At at) const -> Vec<f32, vec> {
  Vec<f32, vec> columns;
#pragma unroll
  for (int i = 0; i < vec; ++i) columns[i] = static_cast<f32>(map.of(column_of(at.chunk) + i));
  return columns;
}
template <RowwiseConfig config> template <int distance, ColumnMap map> KILN_MEMBER auto Row<config>::signs_at(At at) const -> Vec<f32, vec> {
  const auto sign = [](u32 column) KILN_LAMBDA { return column % (2u * distance) < distance ? -1.0f : 1.0f; };
  if constexpr (distance % vec == 0 && map.partner % vec == 0) return Vec<f32, vec>(sign(map.of(column_of(at.chunk))));
  Vec<f32, vec> signs;
#pragma unroll
  for (int i = 0; i < vec; ++i) signs[i] = sign(map.of(vec % (2 * distance) == 0 && !map.partner ? i : column_of(at.chunk) + i));
  return signs;
}

} // namespace kiln
