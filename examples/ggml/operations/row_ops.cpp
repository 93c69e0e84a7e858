// Row operations: norms, softmax and reductions as expressions of a row.
#include "examples/ggml/operations/operations.h"
#include "examples/ggml/operations/pointwise_ops.h"
#include <bit>
#include <cmath>
#include <gen/spec/math.h>

namespace kiln_ggml {
namespace {

using kiln::Expr;

constexpr std::int64_t max_columns = 1 << 20; // of a row that one workgroup reduces

bool is_float_row(const ggml_tensor* x) { return x != nullptr && is_float(x->type) && x->ne[0] <= max_columns; }

} // namespace

// ALiBi: one factor a head.
std::vector<float> alibi_slopes(std::int64_t heads, float max_bias) {
  const auto whole = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const float first = std::pow(2.0f, -max_bias / static_cast<float>(whole)),
              second = std::pow(2.0f, -max_bias / 2.0f / static_cast<float>(whole));
  std::vector<float> result;
  for (std::int64_t h = 0; h < heads; ++h)
    result.push_back(h < whole ? std::pow(first, static_cast<float>(h + 1)) : std::pow(second, static_cast<float>(2 * (h - whole) + 1)));
  return result;
}

bool supports_norm(const ggml_tensor& node) { return is_float_row(node.src[0]) && is_float(node.type); }

bool supports_reduction(const ggml_tensor& node) {
  // ggml defines the sum of all elements for rows without gaps: its CPU backend reads them so, whatever the first stride is.
  if (node.op == GGML_OP_SUM && node.src[0]->nb[0] != ggml_type_size(node.src[0]->type)) return false;
  if (node.op == GGML_OP_SUM && ggml_nelements(node.src[0]) > max_columns) return false;
  return is_float_row(node.src[0]) && node.type == GGML_TYPE_F32;
}

bool supports_argmax(const ggml_tensor& node) {
  return is_float_row(node.src[0]) && node.type == GGML_TYPE_I32 && node.src[0]->ne[0] < (1 << 24);
}

bool supports_soft_max(const ggml_tensor& node) {
  const ggml_tensor *mask = node.src[1], *sinks = node.src[2];
  if (!is_float_row(node.src[0]) || !is_float(node.type)) return false;
  if (mask != nullptr && (!is_float(mask->type) || mask->ne[0] != node.ne[0] || mask->ne[1] < node.ne[1])) return false;
  return sinks == nullptr || (sinks->type == GGML_TYPE_F32 && ggml_is_contiguous(sinks) && sinks->ne[0] == node.ne[2]);
}

Expr build_norm(KernelDraft& draft, const ggml_tensor& node, const Expr& x) {
  const Expr centred = x - kiln::row_mean(x);
  return centred * kiln::rsqrt(kiln::row_mean(centred * centred) + draft.number(float_parameter(node, 0)));
}

Expr build_rms_norm(KernelDraft& draft, const ggml_tensor& node, const Expr& x) {
  return x * kiln::rsqrt(kiln::row_mean(x * x) + draft.number(float_parameter(node, 0)));
}

Expr build_l2_norm(KernelDraft& draft, const ggml_tensor& node, const Expr& x) {
  return x * kiln::rcp(kiln::max(kiln::sqrt(kiln::row_sum(x * x)), draft.number(float_parameter(node, 0))));
}

Expr build_soft_max(KernelDraft& draft, const ggml_tensor& node, const Expr& x) {
  const float max_bias = float_parameter(node, 1);
  Expr value = x * draft.number(float_parameter(node, 0));
  if (node.src[1] != nullptr) {
    TensorView view = view_of(*node.src[1]);
    view.ne[1] = node.ne[1]; // a mask may have more rows than there are queries
    Expr mask = draft.read(view);
    if (max_bias > 0) mask = mask * draft.along(2, draft.constant(alibi_slopes(node.ne[2], max_bias)), kiln::f32);
    value = value + mask;
  }
  Expr top = kiln::row_max(value);
  if (node.src[2] == nullptr) {
    const Expr e = kiln::exp(value - top);
    return e * kiln::rcp(kiln::row_sum(e));
  }
  const Expr sink = draft.along(2, node.src[2]->data, kiln::f32);
  top = kiln::max(top, sink);
  const Expr e = kiln::exp(value - top);
  return e * kiln::rcp(kiln::row_sum(e) + kiln::exp(sink - top));
}

Expr build_sum_rows(KernelDraft&, const ggml_tensor&, const Expr& x) { return kiln::row_sum(x); }
Expr build_mean(KernelDraft&, const ggml_tensor&, const Expr& x) { return kiln::row_mean(x); }
Expr build_cumsum(KernelDraft&, const ggml_tensor&, const Expr& x) { return kiln::row_cumsum(x); }
Expr build_argmax(KernelDraft&, const ggml_tensor&, const Expr& x) { return kiln::row_argmax(x); }

bool supports_ranks(const ggml_tensor& node) {
  return is_float_row(node.src[0]) && node.type == GGML_TYPE_I32 && ggml_is_contiguous(&node) && node.ne[0] <= kiln::max_ranked_columns &&
         node.src[0]->ne[0] <= kiln::max_ranked_columns;
}

bool supports_group_norm(const ggml_tensor& node) {
  const ggml_tensor& x = *node.src[0];
  const int groups = node.op_params[0];
  return is_float(x.type) && is_float(node.type) && x.ne[2] % groups == 0 && x.ne[0] * x.ne[1] * x.ne[2] / groups <= max_columns;
}

namespace {

// `tensor` with rows of `cols` elements; copied if its own lie apart.
TensorView in_rows(GraphBuilder& graph, const ggml_tensor& tensor, std::int64_t cols) {
  TensorView view = view_of(tensor);
  const std::int64_t count = view.count();
  if (!view.is_dense()) {
    const TensorView dense = dense_view(graph.scratch(static_cast<std::size_t>(count) * bytes_of(view.dtype)), view.dtype, view.ne);
    copy(graph, view, dense);
    view = dense;
  }
  return dense_view(view.data, view.dtype, {cols, count / cols, 1, 1});
}

} // namespace

void lower_group_norm(GraphBuilder& graph, const ggml_tensor& node) {
  const std::int64_t cols = node.ne[0] * node.ne[1] * node.ne[2] / node.op_params[0];
  const TensorView x = in_rows(graph, *node.src[0], cols);
  KernelDraft draft(graph, Space::rows, x.ne);
  const Expr value = draft.read(x), centred = value - kiln::row_mean(value);
  draft.write(dense_view(node.data, *dtype_of(node.type), x.ne),
              centred * kiln::rsqrt(kiln::row_mean(centred * centred) + draft.number(float_parameter(node, 1))));
  draft.launch("group_norm");
}

namespace {

bool sorts(std::int64_t cols, std::int64_t ranks) { return ranks > kiln::max_selected_ranks || cols > kiln::max_selected_columns; }
// Rows of a launch: a power of two whose lists, of 16 bytes a column, take 64 MiB of the workspace at most, or one.
std::int64_t rows_of_sort(std::int64_t cols) {
  return std::max<std::int64_t>(1, (1 << 22) / static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(cols))));
}

} // namespace

// The columns of the largest elements; ARGSORT: of all, in either order.
void lower_ranks(GraphBuilder& graph, const ggml_tensor& node) {
  const std::int64_t cols = node.src[0]->ne[0], ranks = node.ne[0];
  TensorView x = in_rows(graph, *node.src[0], cols);
  // A rising order is that of -x, and kernels of many ranks take what lies in memory.
  if (node.op == GGML_OP_ARGSORT && node.op_params[0] == GGML_SORT_ORDER_ASC) {
    const TensorView negated = dense_view(graph.scratch(static_cast<std::size_t>(x.count()) * bytes_of(x.dtype)), x.dtype, x.ne);
    KernelDraft draft(graph, Space::rows, x.ne);
    draft.write(negated, -draft.read(x));
    draft.launch("negated");
    x = negated;
  }
  // A bound of the rows, for kernels that sort in their workspace. Powers of two share a kernel.
  const auto most = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(x.rows(), rows_of_sort(cols)))));
  const kiln::Dim rows = sorts(cols, ranks) ? kiln::dynamic("rows", 1, most) : kiln::dynamic("rows");
  const std::int64_t at_once = sorts(cols, ranks) ? most : x.rows();
  for (std::int64_t first = 0; first < x.rows(); first += at_once) {
    const std::int64_t count = std::min(at_once, x.rows() - first);
    char* const from = static_cast<char*>(x.data) + static_cast<std::size_t>(first * cols) * bytes_of(x.dtype);
    graph.launch(kiln::KernelSpec("ranks").output("y", kiln::i32, kiln::row_top(kiln::input("x", x.dtype, {rows, cols}), ranks)),
                 {{"x", kiln::DeviceTensor{from, x.dtype, {count, cols}, 0}},
                  {"y", kiln::DeviceTensor{static_cast<std::int32_t*>(node.data) + first * ranks, kiln::i32, {count, ranks}, 0}}});
  }
}

void lower_sum(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView x = in_rows(graph, *node.src[0], ggml_nelements(node.src[0]));
  KernelDraft draft(graph, Space::rows, x.ne);
  draft.write(dense_view(node.data, kiln::f32, {1, 1, 1, 1}), kiln::row_sum(draft.read(x)));
  draft.launch("sum");
}

} // namespace kiln_ggml
