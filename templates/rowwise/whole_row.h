// WholeRow<cols>: tensors of a workgroup that has a row as a whole, and what its lanes load and store of them.
#pragma once
#include "common/memory.h"

namespace kiln {

// Elements of columns that were found.
template <class T> struct ColumnPick {
  const T* row;
  KILN_MEMBER f32 at(f32 column) const { return only_element<T>(load_chunk<T, 1>(row, static_cast<u32>(column) * static_cast<u32>(sizeof(T)), 0)); }
};

template <int cols> class WholeRow {
public:
  KILN_MEMBER explicit WholeRow(u32 row) : row_(row) {}
  KILN_MEMBER u32 index() const { return row_; }

  // The first element of this row, in a [rows, cols] tensor or in one that is the same in every row.
  template <class T> KILN_MEMBER T* full(T* tensor, u64 row_stride = cols) const { return tensor + row_ * row_stride; }
  template <class T> KILN_MEMBER T* columns(T* tensor) const { return tensor; }
  template <class T> KILN_MEMBER auto scalar(const T* tensor) const { return load_one(tensor); }
  template <class T> KILN_MEMBER auto of_row(const T* tensor, u64 row_stride = 1) const { return load_one(tensor + row_ * row_stride); }
  template <class T> KILN_MEMBER auto picks(const T* row) const { return ColumnPick<T>{row}; }

protected:
  template <class T> KILN_DEVICE auto load_one(const T* from) { return only_element<__remove_cv(T)>(load_chunk<__remove_cv(T), 1>(from, 0, 0)); }
  template <class T> KILN_DEVICE void store_one(T* place, f32 value) { store_chunk<T, 1>(place, 0, 0, to<T>(Vec<f32, 1>(value))); }
  template <class T> KILN_DEVICE void store_one(T* place, i32 value) { store_chunk<T, 1>(place, 0, 0, to<T>(Vec<i32, 1>(value))); }

  u32 row_;
};

} // namespace kiln
