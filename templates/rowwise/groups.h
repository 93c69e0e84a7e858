// Groups of columns: one number for several consecutive elements of a row, in memory.
#pragma once
#include "rowwise.h"

namespace kiln {

template <RowwiseConfig config> template <int group, class T> KILN_MEMBER auto Row<config>::of_group(At at, const T* tensor) const {
  return load_one(tensor + groups_before<group>(), group_in_part<group>(at));
}
template <RowwiseConfig config> template <int group, class T, class V> KILN_MEMBER void Row<config>::store_of_group(At at, T* tensor, V value) const {
  const auto element = to<T>(Vec<V, 1>(value)); // in front of the branch: behind it, LLVM gives the other lanes a branch of their own
  if (at.count > 0 && column(at) % group == 0) store_one(tensor + groups_before<group>(), group_in_part<group>(at), element);
}
template <RowwiseConfig config> template <int group, class T> KILN_MEMBER auto Row<config>::of_group(At at, const T* tensor, u64 row_stride) const {
  return load_one(tensor + row_ * row_stride, row_in_block_ * static_cast<u32>(row_stride) + group_index<group>(at));
}
template <RowwiseConfig config> template <int group, class T, class V> KILN_MEMBER void Row<config>::store_of_group(At at, T* tensor, V value, u64 row_stride) const {
  const auto element = to<T>(Vec<V, 1>(value));
  if (at.count > 0 && column(at) % group == 0)
    store_one(tensor + row_ * row_stride, row_in_block_ * static_cast<u32>(row_stride) + group_index<group>(at), element);
}
template <RowwiseConfig config> template <int group, class T, class V> KILN_MEMBER void Row<config>::store_of_group_transposed(At at, T* tensor, V value, u32 rows) const {
  if (at.count > 0 && column(at) % group == 0)
    store_one(tensor + (static_cast<u64>(group_index<group>(at)) * rows + row_), row_in_block_, value);
}
template <RowwiseConfig config> template <int group> KILN_MEMBER f32 Row<config>::group_size(At at) const {
  const u32 first = group_index<group>(at) * group, left = config.cols - first;
  return static_cast<f32>(left < group ? left : group);
}
template <RowwiseConfig config> template <int group> KILN_MEMBER u32 Row<config>::group_index(At at) const {
  const u32 column = column_of(at.chunk);
  return (at.count > 0 ? column : static_cast<u32>(config.cols - 1)) / group;
}
// Groups of a dense tensor: those in front of this wave's part, a scalar for the base of an address, and the one inside that part.
template <RowwiseConfig config> template <int group> KILN_MEMBER u64 Row<config>::groups_before() const {
  if constexpr (has_whole_groups<group>) return (row_ * static_cast<u64>(config.cols) + uniform_columns()) / group;
  else return row_ * static_cast<u64>(ceil_div(config.cols, group));
}
template <RowwiseConfig config> template <int group> KILN_MEMBER u32 Row<config>::group_in_part(At at) const {
  const u32 of_row = row_in_block_ * ceil_div(config.cols, group);
  if constexpr (has_whole_groups<group>) return of_row + (lane_ * vec + static_cast<u32>(at.chunk * stride)) / group;
  else return of_row + group_index<group>(at);
}

} // namespace kiln
