// Rows by index: GET_ROWS, SET_ROWS and ADD_ID, whose indices are known only when the graph runs.
#include "examples/ggml/operations/operations.h"
#include <gen/spec/math.h>

namespace kiln_ggml {
namespace {

using kiln::Dim;
using kiln::dynamic;
using kiln::Expr;

std::byte* moved(const TensorView& v, std::int64_t elements) {
  return static_cast<std::byte*>(v.data) + elements * static_cast<std::int64_t>(bytes_of(v.dtype));
}

bool rows_are_aligned(const TensorView& v) {
  return v.is_aligned() && v.stride[0] == 1 && v.stride[1] * static_cast<std::int64_t>(bytes_of(v.dtype)) % 16 == 0 &&
         v.stride[1] >= v.ne[0];
}

kiln::DeviceTensor rows_of(const TensorView& v, std::int64_t batch2, std::int64_t batch3) {
  return {moved(v, batch2 * v.stride[2] + batch3 * v.stride[3]), v.dtype, {v.ne[1], v.ne[0]}, v.stride[1]};
}

} // namespace

TensorView dense(GraphBuilder& graph, const TensorView& view) {
  if (view.is_dense() && view.is_aligned()) return view;
  const TensorView copied = dense_view(graph.scratch(static_cast<std::size_t>(view.count()) * bytes_of(view.dtype)), view.dtype, view.ne);
  copy(graph, view, copied);
  return copied;
}

// Indices as a dense tensor. i64 ones are moved as pairs of 32 bits, which are numbers to nobody.
TensorView dense_indices(GraphBuilder& graph, const ggml_tensor& tensor) {
  TensorView view = view_of(tensor);
  if (view.is_dense()) return view;
  TensorView words = view;
  const std::int64_t width = view.dtype == kiln::i64 ? 2 : 1;
  words.dtype = kiln::f32;
  words.ne = {width, view.ne[0], view.ne[1], view.ne[2] * view.ne[3]};
  words.stride = {1, view.stride[0] * width, view.stride[1] * width, view.stride[2] * width};
  const TensorView copied = dense_view(graph.scratch(static_cast<std::size_t>(words.count()) * 4), kiln::f32, words.ne);
  copy(graph, words, copied);
  return dense_view(copied.data, view.dtype, view.ne);
}

bool supports_get_rows(const ggml_tensor& node) {
  const ggml_tensor& table = *node.src[0];
  if (node.src[1]->type != GGML_TYPE_I32 || node.src[1]->ne[3] != 1) return false;
  if (table.type == GGML_TYPE_I32) return node.type == GGML_TYPE_I32;
  return node.type == GGML_TYPE_F32 && (is_float(table.type) || (can_decode(table.type) && ggml_is_contiguous(&table)));
}

// One launch for each batch of the table: y[tokens, cols] = gather(table[n, cols], index[tokens, 1]).
void lower_get_rows(GraphBuilder& graph, const ggml_tensor& node) {
  const bool bits = node.type == GGML_TYPE_I32;
  TensorView table = bits ? bits_of(*node.src[0]) : decoded(graph, *node.src[0]);
  if (!rows_are_aligned(table)) table = dense(graph, table);
  const TensorView index = dense_indices(graph, *node.src[1]), to = bits ? bits_of(node) : view_of(node);
  const std::int64_t cols = to.ne[0], tokens = to.ne[1];
  const bool strided = table.stride[1] != cols;
  for (std::int64_t b = 0; b < to.ne[2] * to.ne[3]; ++b) {
    const std::int64_t b2 = b % to.ne[2], b3 = b / to.ne[2];
    const Expr t = kiln::input("table", table.dtype, {dynamic("n", 1), cols}, strided ? kiln::Layout::strided : kiln::Layout::contiguous);
    const Expr i = kiln::input("index", kiln::i32, {dynamic("tokens"), 1});
    kiln::DeviceTensor rows = rows_of(table, b2 % table.ne[2], b3 % table.ne[3]);
    if (!strided) rows.row_stride = 0;
    void* const indices = moved(index, b2 * index.stride[1] + b3 * index.stride[2]);
    void* const out = moved(to, b2 * to.stride[2] + b3 * to.stride[3]);
    graph.launch(kiln::KernelSpec("get_rows").output("y", to.dtype, kiln::gather(t, i)),
                 {{"table", rows},
                  {"index", kiln::DeviceTensor{indices, kiln::i32, {tokens, 1}, 0}},
                  {"y", kiln::DeviceTensor{out, to.dtype, {tokens, cols}, 0}}});
  }
}

bool supports_set_rows(const ggml_tensor& node) {
  const ggml_tensor &rows = *node.src[0], &index = *node.src[1];
  return is_float(rows.type) && (is_float(node.type) || (can_encode(node.type) && rows.ne[0] % ggml_blck_size(node.type) == 0)) &&
         (index.type == GGML_TYPE_I64 || index.type == GGML_TYPE_I32) && node.nb[0] == ggml_type_size(node.type);
}

namespace {

// The rows as what the target consists of: floats, or the bytes of blocks.
TensorView rows_to_set(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView x = dense(graph, view_of(*node.src[0]));
  if (is_float(node.type)) return x;
  const std::int64_t bytes = static_cast<std::int64_t>(ggml_row_size(node.type, x.ne[0]));
  const TensorView blocks =
      dense_view(graph.scratch(static_cast<std::size_t>(bytes * x.rows())), bits_of(node).dtype, {bytes, x.ne[1], x.ne[2], x.ne[3]});
  encode(graph, x, node.type, blocks.data);
  return blocks;
}

} // namespace

// One launch for each batch of the target, which indices of smaller batches are repeated for.
void lower_set_rows(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView x = rows_to_set(graph, node), index = dense_indices(graph, *node.src[1]);
  const TensorView to = is_float(node.type) ? view_of(node) : bits_of(node);
  const std::int64_t cols = to.ne[0], tokens = x.ne[1];
  for (std::int64_t b = 0; b < to.ne[2] * to.ne[3]; ++b) {
    const std::int64_t b2 = b % to.ne[2], b3 = b / to.ne[2];
    // Rows as wide as they are far apart are the table's own; others are a strided one.
    const bool strided = to.stride[1] != cols;
    const Expr target =
        kiln::input("target", to.dtype, {dynamic("n", 1), cols}, strided ? kiln::Layout::strided : kiln::Layout::contiguous);
    const Expr value = kiln::input("x", x.dtype, {dynamic("tokens"), cols});
    const Expr i = kiln::input("index", index.dtype, {dynamic("tokens"), 1});
    kiln::DeviceTensor rows = rows_of(to, b2, b3);
    if (!strided) rows.row_stride = 0;
    void* const indices = moved(index, b2 % index.ne[1] * index.stride[1] + b3 % index.ne[2] * index.stride[2]);
    void* const values = moved(x, b2 * x.stride[2] + b3 * x.stride[3]);
    graph.launch(kiln::KernelSpec("set_rows")
                     .output("y", to.dtype, kiln::scatter(target, i, value, {.duplicates = true}), // as ggml allows

                             {.in_place_of = "target", .layout = strided ? kiln::Layout::strided : kiln::Layout::contiguous}),
                 {{"y", rows},
                  {"index", kiln::DeviceTensor{indices, index.dtype, {tokens, 1}, 0}},
                  {"x", kiln::DeviceTensor{values, x.dtype, {tokens, cols}, 0}}});
  }
}

bool supports_add_id(const ggml_tensor& node) {
  for (const ggml_tensor* source : {node.src[0], node.src[1]})
    if (source->type != GGML_TYPE_F32) return false;
  return node.type == GGML_TYPE_F32 && node.src[2]->type == GGML_TYPE_I32 && node.ne[3] == 1;
}

// y[tokens, experts, cols] = x + gather(bias[n, cols], id[tokens, experts, 1])
void lower_add_id(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView x = dense(graph, view_of(*node.src[0])), bias = dense(graph, view_of(*node.src[1]));
  const TensorView id = dense_indices(graph, *node.src[2]), to = view_of(node);
  const std::int64_t cols = to.ne[0], rows = to.ne[1] * to.ne[2];
  const Expr value = kiln::input("x", x.dtype, {dynamic("rows"), cols});
  const Expr table = kiln::input("bias", bias.dtype, {dynamic("n", 1), cols});
  const Expr index = kiln::input("id", kiln::i32, {dynamic("rows"), 1});
  const bool in_place = x.data == to.data;
  std::vector<kiln::Argument> arguments = {{"bias", kiln::DeviceTensor{bias.data, bias.dtype, {bias.ne[1], cols}, 0}},
                                           {"id", kiln::DeviceTensor{id.data, kiln::i32, {rows, 1}, 0}},
                                           {"y", kiln::DeviceTensor{to.data, to.dtype, {rows, cols}, 0}}};
  if (!in_place) arguments.emplace_back("x", kiln::DeviceTensor{x.data, x.dtype, {rows, cols}, 0});
  graph.launch(kiln::KernelSpec("add_id").output("y", to.dtype, value + kiln::gather(table, index), {.in_place_of = in_place ? "x" : ""}),
               arguments);
}

} // namespace kiln_ggml
