// TensorView: the elements of a ggml tensor as Kiln's types, with strides in elements, and maps of where elements lie.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <gen/spec/dtype.h>
#include <ggml.h>
#include <optional>
#include <vector>

namespace kiln_ggml {

using Extents = std::array<std::int64_t, 4>; // ggml's order: the first dimension is the innermost

struct TensorView {
  void* data = nullptr; // a device address
  kiln::DType dtype = kiln::f32;
  Extents ne = {1, 1, 1, 1};
  Extents stride = {1, 1, 1, 1}; // in elements

  std::int64_t count() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
  std::int64_t rows() const { return ne[1] * ne[2] * ne[3]; }
  std::int64_t last() const;      // the offset of the element that lies furthest
  std::size_t span_bytes() const; // from the first element to the end of the last
  bool is_dense() const;          // row-major without gaps
  bool has_dense_rows() const { return stride[0] == 1 || ne[0] == 1; }
  bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; } // for accesses of any width
};

// The type that holds the same numbers; nothing for quantised types and those that Kiln does not compute in.
std::optional<kiln::DType> dtype_of(ggml_type type);
bool is_float(ggml_type type); // f32, f16, bf16
std::size_t bytes_of(kiln::DType type);

// For a tensor whose type dtype_of knows.
TensorView view_of(const ggml_tensor& tensor);
// Any tensor as what it can be copied by without looking at it: f32 in place of i32, bytes in place of blocks. All of `tensor`'s
// elements have to lie in whole blocks, those of a permuted tensor in three dimensions.
TensorView bits_of(const ggml_tensor& tensor);
TensorView dense_view(void* data, kiln::DType dtype, const Extents& ne);

// Says where the elements of an iteration lie in a tensor, row-major: elements from its first one, -1 for none.
using IndexMap = std::vector<std::int32_t>;

template <typename Place> IndexMap map_of(const Extents& ne, Place&& place) {
  IndexMap map;
  map.reserve(static_cast<std::size_t>(ne[0] * ne[1] * ne[2] * ne[3]));
  for (std::int64_t i3 = 0; i3 < ne[3]; ++i3)
    for (std::int64_t i2 = 0; i2 < ne[2]; ++i2)
      for (std::int64_t i1 = 0; i1 < ne[1]; ++i1)
        for (std::int64_t i0 = 0; i0 < ne[0]; ++i0) map.push_back(static_cast<std::int32_t>(place(i0, i1, i2, i3)));
  return map;
}
// Each element of `ne` in a tensor that is repeated to that size.
IndexMap repeated(const TensorView& view, const Extents& ne);
// Each row of `ne` in such a tensor, in units of `unit` elements.
IndexMap repeated_rows(const TensorView& view, const Extents& ne, std::int64_t unit);

} // namespace kiln_ggml
