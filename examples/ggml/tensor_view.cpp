// TensorView: strides of ggml tensors, and maps.
#include "examples/ggml/tensor_view.h"
#include <algorithm>

namespace kiln_ggml {

std::int64_t TensorView::last() const {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < 4; ++d) offset += (ne[d] - 1) * stride[d];
  return offset;
}

std::size_t TensorView::span_bytes() const { return count() == 0 ? 0 : static_cast<std::size_t>(last() + 1) * bytes_of(dtype); }

bool TensorView::is_dense() const {
  std::int64_t expected = 1;
  for (std::size_t d = 0; d < 4; ++d) {
    if (ne[d] != 1 && stride[d] != expected) return false;
    expected *= ne[d];
  }
  return true;
}

std::optional<kiln::DType> dtype_of(ggml_type type) {
  switch (type) {
  case GGML_TYPE_F32: return kiln::f32;
  case GGML_TYPE_F16: return kiln::f16;
  case GGML_TYPE_BF16: return kiln::bf16;
  case GGML_TYPE_I32: return kiln::i32;
  case GGML_TYPE_I64: return kiln::i64;
  case GGML_TYPE_I8: return kiln::i8;
  default: return std::nullopt;
  }
}

bool is_float(ggml_type type) { return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16; }

std::size_t bytes_of(kiln::DType type) { return static_cast<std::size_t>(kiln::size_bytes(type)); }

TensorView view_of(const ggml_tensor& tensor) {
  TensorView view{.data = tensor.data, .dtype = *dtype_of(tensor.type)};
  const auto bytes = static_cast<std::int64_t>(bytes_of(view.dtype));
  for (std::size_t d = 0; d < 4; ++d) {
    view.ne[d] = tensor.ne[d];
    view.stride[d] = static_cast<std::int64_t>(tensor.nb[d]) / bytes;
  }
  return view;
}

TensorView bits_of(const ggml_tensor& tensor) {
  if (is_float(tensor.type)) return view_of(tensor);
  TensorView view{.data = tensor.data, .dtype = tensor.type == GGML_TYPE_I32 ? kiln::f32 : kiln::u8};
  const std::int64_t width = view.dtype == kiln::f32 ? 4 : 1;
  const auto block = static_cast<std::int64_t>(ggml_type_size(tensor.type)) / width;
  for (std::size_t d = 0; d < 4; ++d) {
    view.ne[d] = tensor.ne[d];
    view.stride[d] = static_cast<std::int64_t>(tensor.nb[d]) / width;
  }
  if (block == 1) return view;
  if (tensor.nb[0] != ggml_type_size(tensor.type)) { // elements apart: their bytes are a dimension of their own
    for (std::size_t d = 3; d > 0; --d) view.ne[d] = view.ne[d - 1], view.stride[d] = view.stride[d - 1];
    view.ne[0] = block;
    view.stride[0] = 1;
    return view;
  }
  view.ne[0] = tensor.ne[0] / ggml_blck_size(tensor.type) * block;
  view.stride[0] = 1;
  return view;
}

TensorView dense_view(void* data, kiln::DType dtype, const Extents& ne) {
  return {.data = data, .dtype = dtype, .ne = ne, .stride = {1, ne[0], ne[0] * ne[1], ne[0] * ne[1] * ne[2]}};
}

IndexMap repeated(const TensorView& v, const Extents& ne) {
  return map_of(ne, [&](std::int64_t i0, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
    return i0 % v.ne[0] * v.stride[0] + i1 % v.ne[1] * v.stride[1] + i2 % v.ne[2] * v.stride[2] + i3 % v.ne[3] * v.stride[3];
  });
}

IndexMap repeated_rows(const TensorView& v, const Extents& ne, std::int64_t unit) {
  return map_of({1, ne[1], ne[2], ne[3]}, [&](std::int64_t, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
    return (i1 % v.ne[1] * v.stride[1] + i2 % v.ne[2] * v.stride[2] + i3 % v.ne[3] * v.stride[3]) / unit;
  });
}

} // namespace kiln_ggml
