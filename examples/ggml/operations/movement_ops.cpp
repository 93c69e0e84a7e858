// Movement: operations that only say where each element comes from. One kernel does them all, with an index an element.
#include "examples/ggml/operations/operations.h"
#include "examples/ggml/operations/pointwise_ops.h"
#include <algorithm>
#include <gen/spec/math.h>
#include <limits>

namespace kiln_ggml {
namespace {

using kiln::Expr;
using i64 = std::int64_t;

i64 wrapped(i64 i, i64 size) { return ((i % size) + size) % size; }

i64 at(const TensorView& v, i64 i0, i64 i1, i64 i2, i64 i3) {
  return i0 * v.stride[0] + i1 * v.stride[1] + i2 * v.stride[2] + i3 * v.stride[3];
}

bool in_triangle(int type, i64 column, i64 row) {
  switch (type) {
  case GGML_TRI_TYPE_LOWER: return column < row;
  case GGML_TRI_TYPE_LOWER_DIAG: return column <= row;
  case GGML_TRI_TYPE_UPPER: return column > row;
  default: return column >= row;
  }
}

// Before and behind each dimension of the source; circular: it repeats there.
IndexMap padded(const ggml_tensor& node, const TensorView& x) {
  const std::int32_t* const p = node.op_params;
  const bool circular = p[8] != 0;
  return map_of(view_of(node).ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) -> i64 {
    const i64 i[4] = {i0 - p[0], i1 - p[2], i2 - p[4], i3 - p[6]};
    if (circular) return at(x, wrapped(i[0], x.ne[0]), wrapped(i[1], x.ne[1]), wrapped(i[2], x.ne[2]), wrapped(i[3], x.ne[3]));
    for (std::size_t d = 0; d < 4; ++d)
      if (i[d] < 0 || i[d] >= x.ne[d]) return -1;
    return at(x, i[0], i[1], i[2], i[3]);
  });
}

IndexMap reflected(const ggml_tensor& node, const TensorView& x) {
  return map_of(view_of(node).ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) {
    i64 i = i0 - node.op_params[0];
    if (i < 0) i = -i;
    if (i >= x.ne[0]) i = 2 * (x.ne[0] - 1) - i;
    return at(x, i, i1, i2, i3);
  });
}

// Pixels under a kernel that steps over an image: of each output pixel a row, channel by channel.
IndexMap columns_of_image(const ggml_tensor& node, const TensorView& x) {
  const std::int32_t* const p = node.op_params; // strides, padding, dilation
  const bool flat = p[6] != 1;
  const ggml_tensor& kernel = *node.src[0];
  const i64 kw = kernel.ne[0], kh = flat ? 1 : kernel.ne[1], height = flat ? 1 : x.ne[1];
  const i64 channel = x.stride[flat ? 1 : 2], image = x.stride[flat ? 2 : 3], line = flat ? 0 : x.stride[1];
  return map_of(view_of(node).ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) -> i64 {
    const i64 n = flat ? i2 : i3, oh = flat ? 0 : i2;
    const i64 w = i1 * p[0] + i0 % kw * p[4] - p[2], h = flat ? 0 : oh * p[1] + i0 / kw % kh * p[5] - p[3];
    if (w < 0 || w >= x.ne[0] || h < 0 || h >= height) return -1;
    return n * image + i0 / (kw * kh) * channel + h * line + w * x.stride[0];
  });
}

IndexMap columns_of_volume(const ggml_tensor& node, const TensorView& x) {
  const std::int32_t* const p = node.op_params;
  const ggml_tensor& kernel = *node.src[0];
  const i64 kw = kernel.ne[0], kh = kernel.ne[1], kd = kernel.ne[2], channels = p[9], depth = node.ne[3] / (x.ne[3] / channels);
  return map_of(view_of(node).ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) -> i64 {
    const i64 w = i1 * p[0] + i0 % kw * p[6] - p[3], h = i2 * p[1] + i0 / kw % kh * p[7] - p[4];
    const i64 d = i3 % depth * p[2] + i0 / (kw * kh) % kd * p[8] - p[5], c = i0 / (kw * kh * kd);
    if (w < 0 || w >= x.ne[0] || h < 0 || h >= x.ne[1] || d < 0 || d >= x.ne[2]) return -1;
    return at(x, w, h, d, i3 / depth * channels + c);
  });
}

IndexMap source_map(const ggml_tensor& node, const TensorView& x, const Extents& ne) {
  const std::int32_t* const p = node.op_params;
  switch (node.op) {
  case GGML_OP_PAD: return padded(node, x);
  case GGML_OP_PAD_REFLECT_1D: return reflected(node, x);
  case GGML_OP_IM2COL: return columns_of_image(node, x);
  case GGML_OP_IM2COL_3D: return columns_of_volume(node, x);
  case GGML_OP_ROLL:
    return map_of(ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) {
      return at(x, wrapped(i0 - p[0], x.ne[0]), wrapped(i1 - p[1], x.ne[1]), wrapped(i2 - p[2], x.ne[2]), wrapped(i3 - p[3], x.ne[3]));
    });
  case GGML_OP_TRI:
    return map_of(ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) { return in_triangle(p[0], i0, i1) ? at(x, i0, i1, i2, i3) : -1; });
  case GGML_OP_DIAG: return map_of(ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) { return i0 == i1 ? at(x, i0, 0, i2, i3) : -1; });
  case GGML_OP_DIAG_MASK_ZERO:
    return map_of(ne, [&](i64 i0, i64 i1, i64 i2, i64 i3) { return i0 > p[0] + i1 ? -1 : at(x, i0, i1, i2, i3); });
  default: return repeated(x, ne);
  }
}

bool is_plain(ggml_type type) { return is_float(type) || type == GGML_TYPE_I32; }

} // namespace

bool supports_copy(const ggml_tensor& node) {
  const ggml_tensor &from = *node.src[0], &to = node;
  if (ggml_nelements(&from) != ggml_nelements(&to)) return false;
  if (from.type == to.type) // blocks move whole, so rows have to be made of them
    return is_plain(from.type) || (from.type == GGML_TYPE_I16 && from.ne[3] == 1 && to.ne[3] == 1) ||
           (from.nb[0] == ggml_type_size(from.type) && to.nb[0] == ggml_type_size(to.type) && from.ne[0] % ggml_blck_size(from.type) == 0);
  if (can_decode(from.type)) return is_float(to.type) && ggml_is_contiguous(&from);
  if (can_encode(to.type)) return is_float(from.type) && ggml_is_contiguous(&to);
  return is_float(from.type) && is_float(to.type);
}

// Elements in the order of ggml's row-major counting, which shapes of from and to share even if they differ.
void lower_copy(GraphBuilder& graph, const ggml_tensor& node) {
  const ggml_tensor& source = *node.src[0];
  const bool same = source.type == node.type;
  if (!same && can_encode(node.type)) return encode(graph, dense(graph, view_of(source)), node.type, node.data);
  const TensorView from = same ? bits_of(source) : decoded(graph, source), to = same ? bits_of(node) : view_of(node);
  if (from.ne == to.ne || from.is_dense()) {
    TensorView as_to = from.ne == to.ne ? from : dense_view(from.data, from.dtype, to.ne);
    return copy(graph, as_to, to);
  }
  if (to.is_dense()) return copy(graph, from, dense_view(to.data, to.dtype, from.ne));
  const TensorView between = dense_view(graph.scratch(static_cast<std::size_t>(to.count()) * bytes_of(from.dtype)), from.dtype, from.ne);
  copy(graph, from, between);
  copy(graph, dense_view(between.data, from.dtype, to.ne), to);
}

bool supports_movement(const ggml_tensor& node) {
  if (node.op == GGML_OP_ACC && node.type != GGML_TYPE_F32) return false;
  for (const ggml_tensor* source : node.src)
    if (source != nullptr && (source->type != node.type || !is_plain(source->type))) return false;
  return node.op != GGML_OP_PAD_REFLECT_1D || node.src[0]->ne[0] > std::max(node.op_params[0], node.op_params[1]);
}

bool supports_im2col(const ggml_tensor& node) { return is_float(node.src[1]->type) && is_float(node.type); }

void lower_movement(GraphBuilder& graph, const ggml_tensor& node) {
  const bool image = node.op == GGML_OP_IM2COL || node.op == GGML_OP_IM2COL_3D;
  const TensorView from = bits_of(*node.src[image ? 1 : 0]), to = bits_of(node);
  KernelDraft draft(graph, Space::flat, to.ne);
  draft.write(to, draft.read(from, source_map(node, from, to.ne)));
  draft.launch("moved");
}

// Each element is of one of the two: a launch for each, into its part.
void lower_concat(GraphBuilder& graph, const ggml_tensor& node) {
  const auto dim = static_cast<std::size_t>(node.op_params[0]);
  TensorView part = bits_of(node);
  for (const ggml_tensor* source : {node.src[0], node.src[1]}) {
    part.ne = view_of(*source).ne;
    copy(graph, bits_of(*source), part);
    part.data = static_cast<std::byte*>(part.data) + static_cast<std::size_t>(source->ne[dim] * part.stride[dim]) * bytes_of(part.dtype);
  }
}

// SET and ACC: src[0], with a window of it replaced by src[1], or added to.
void lower_set(GraphBuilder& graph, const ggml_tensor& node) {
  const std::int32_t* const p = node.op_params; // strides of the window in bytes, its offset, in place
  const TensorView base = bits_of(*node.src[0]), to = bits_of(node);
  if (base.data != to.data) copy(graph, base, to);
  const TensorView change = bits_of(*node.src[1]);
  TensorView window = to;
  const auto bytes = static_cast<i64>(bytes_of(to.dtype));
  window.data = static_cast<std::byte*>(to.data) + p[3];
  window.ne = change.ne;
  window.stride = {1, p[0] / bytes, p[1] / bytes, p[2] / bytes};
  if (node.op == GGML_OP_SET) return copy(graph, change, window);
  KernelDraft draft(graph, Space::flat, window.ne);
  const Expr before = draft.read(window);
  draft.write(window, before + draft.read(change));
  draft.launch("added");
}

void lower_diag_mask(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView x = view_of(*node.src[0]), to = view_of(node);
  const i64 past = node.op_params[0];
  // An element of 0 or minus infinity, of a table of two.
  const TensorView kinds =
      dense_view(graph.constant(std::vector<float>{0.0f, -std::numeric_limits<float>::infinity()}), kiln::f32, {2, 1, 1, 1});
  KernelDraft draft(graph, Space::flat, to.ne);
  const Expr value = draft.read(x);
  draft.write(to, value + draft.read(kinds, map_of(to.ne, [&](i64 i0, i64 i1, i64, i64) { return i0 > past + i1 ? 1 : 0; })));
  draft.launch("diag_mask");
}

bool supports_made(const ggml_tensor& node) { return is_float(node.type); }

// FILL and ARANGE: what they make is known now, and is copied at each launch.
void lower_made(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView to = view_of(node);
  if (node.op == GGML_OP_FILL) {
    const std::vector<float> value = {float_parameter(node, 0)};
    return copy(graph, dense_view(graph.constant(value), kiln::f32, {1, 1, 1, 1}), to);
  }
  const float start = float_parameter(node, 0), step = float_parameter(node, 2);
  std::vector<float> values;
  for (i64 i = 0; i < node.ne[0]; ++i) values.push_back(start + step * static_cast<float>(i));
  copy(graph, dense_view(graph.constant(values), kiln::f32, to.ne), to);
}

} // namespace kiln_ggml
