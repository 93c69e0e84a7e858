// KernelDraft: how tensors become inputs of each space.
#include "examples/ggml/kernel_draft.h"
#include <algorithm>
#include <gen/spec/math.h>
#include <numeric>
#include <utility>

namespace kiln_ggml {
namespace {

bool same_or_one(const Extents& ne, const Extents& full) {
  for (std::size_t d = 0; d < 4; ++d)
    if (ne[d] != full[d] && ne[d] != 1) return false;
  return true;
}

// The largest number of elements that every row's offset is a multiple of.
std::int64_t common_step(const TensorView& v) {
  std::int64_t step = 0;
  for (std::size_t d = 1; d < 4; ++d)
    if (v.ne[d] > 1) step = std::gcd(step, v.stride[d]);
  return step;
}

} // namespace

void KernelDraft::Axes::add(const char* name, std::int64_t size) {
  dims.push_back(size == 1 ? kiln::Dim(1) : kiln::dynamic(name));
  sizes.push_back(size);
}

KernelDraft::KernelDraft(GraphBuilder& graph, Space space, const Extents& ne) : graph_(graph), space_(space), ne_(ne) {}

KernelDraft::KernelDraft(GraphBuilder& graph, const ProductSize& p, Space space)
    : graph_(graph), space_(space), ne_{p.n, p.m, p.batch2 * p.repeat2, p.batch3 * p.repeat3}, product_(p) {}

KernelDraft::Axes KernelDraft::row_axes(const Extents& ne, std::int64_t cols) const {
  Axes axes;
  for (const auto& [d, name] : {std::pair(3u, "n3"), std::pair(2u, "n2"), std::pair(1u, "n1")}) axes.add(ne[d] == 1 ? "" : name, ne[d]);
  axes.dims.push_back(cols);
  axes.sizes.push_back(cols);
  return axes;
}

KernelDraft::Axes KernelDraft::product_axes(bool repeats, bool m, bool n, std::int64_t cols) const {
  Axes axes;
  axes.add("b3", product_.batch3);
  axes.add("r3", repeats ? product_.repeat3 : 1);
  axes.add("b2", product_.batch2);
  axes.add("r2", repeats ? product_.repeat2 : 1);
  axes.add("m", m ? product_.m : 1);
  axes.add("n", n ? product_.n : 1);
  axes.dims.push_back(cols);
  axes.sizes.push_back(cols);
  return axes;
}

kiln::Expr KernelDraft::input(const TensorView& memory, Axes axes, std::int64_t stride, bool full) {
  const std::string name = next("x");
  for (std::size_t d = 0; d < axes.dims.size(); ++d)
    if (axes.dims[d].is_dynamic()) sizes_[axes.dims[d].name()] = axes.sizes[d];
  kiln::Expr expr = kiln::input(name, memory.dtype, axes.dims, stride ? kiln::Layout::strided : kiln::Layout::contiguous);
  arguments_.emplace_back(name, kiln::DeviceTensor{memory.data, memory.dtype, std::move(axes.sizes), stride});
  inputs_.push_back({name, memory, full});
  return expr;
}

kiln::Expr KernelDraft::through(const TensorView& table, std::int64_t cols, std::int64_t unit, Axes index, const IndexMap& map) {
  const std::string rows = next("t");
  const std::int64_t count = (table.last() - (cols - 1)) / unit + 1;
  const kiln::Expr t = input(table, {{kiln::dynamic(rows, 1), cols}, {count, cols}}, unit == cols ? 0 : unit, false);
  const std::string name = next("j");
  for (std::size_t d = 0; d < index.dims.size(); ++d)
    if (index.dims[d].is_dynamic()) sizes_[index.dims[d].name()] = index.sizes[d];
  const kiln::Expr i = kiln::input(name, kiln::i32, index.dims);
  arguments_.emplace_back(name, kiln::DeviceTensor{graph_.constant(map), kiln::i32, std::move(index.sizes), 0});
  return kiln::gather(t, i);
}

// The rows of `view`, repeated to `ne`, by an index each; nothing if no table has them as its rows.
std::optional<kiln::Expr> KernelDraft::rows_through(const TensorView& view, std::int64_t cols, const Axes& index, const Extents& ne) {
  std::int64_t unit = common_step(view);
  if (unit == 0 || unit % cols == 0) unit = cols;
  const auto bytes = static_cast<std::int64_t>(bytes_of(view.dtype));
  const bool one_element = cols == 1;
  if (!view.has_dense_rows() || unit < cols || (!one_element && (!view.is_aligned() || (unit != cols && unit * bytes % 16 != 0))))
    return std::nullopt;
  return through(view, cols, unit, index, repeated_rows(view, ne, unit));
}

TensorView KernelDraft::dense_copy(const TensorView& view, const Extents& ne) {
  const auto elements = static_cast<std::size_t>(ne[0] * ne[1] * ne[2] * ne[3]);
  const TensorView copied = dense_view(graph_.scratch(elements * bytes_of(view.dtype)), view.dtype, ne);
  copy(graph_, view, copied);
  return copied;
}

kiln::Expr KernelDraft::read(const TensorView& view) {
  if (space_ == Space::rows) return rows_of(view);
  if (space_ == Space::product) return result_of(view);
  if (space_ == Space::matrix) return matrix_result(view);
  if (view.ne == ne_ && view.is_dense() && view.is_aligned()) {
    Axes axes;
    axes.add("n", view.count());
    axes.add("", 1);
    return input(view, std::move(axes), 0, true);
  }
  return read(view, repeated(view, ne_));
}

kiln::Expr KernelDraft::read(const TensorView& table, const IndexMap& map) {
  Axes index;
  index.add("n", ne_[0] * ne_[1] * ne_[2] * ne_[3]);
  index.add("", 1);
  return through(table, 1, 1, std::move(index), map);
}

kiln::Expr KernelDraft::rows_of(const TensorView& view) {
  const bool aligned = view.is_aligned() || view.ne[0] == 1;
  if (same_or_one(view.ne, ne_) && view.is_dense() && aligned) return input(view, row_axes(view.ne, view.ne[0]), 0, view.ne == ne_);
  if (view.ne[0] == ne_[0] || view.ne[0] == 1)
    if (auto rows = rows_through(view, view.ne[0], row_axes(ne_, 1), ne_)) return *rows;
  const Extents whole = {view.ne[0] == 1 ? 1 : ne_[0], ne_[1], ne_[2], ne_[3]};
  return input(dense_copy(view, whole), row_axes(whole, whole[0]), 0, false);
}

kiln::Expr KernelDraft::operand(const TensorView& view, const Axes& full, const Axes& index) {
  if (view.is_dense() && view.is_aligned()) return input(view, full, 0, false);
  if (auto rows = rows_through(view, view.ne[0], index, view.ne)) return *rows;
  return input(dense_copy(view, view.ne), full, 0, false);
}

kiln::Expr KernelDraft::product_of(const TensorView& activations, const TensorView& weights) {
  auto a = std::ranges::find_if(activations_, [&](const auto& known) { return known.first.data == activations.data; });
  if (a == activations_.end()) {
    const Axes full = product_axes(true, true, false, product_.k), index = product_axes(true, true, false, 1);
    activations_.emplace_back(activations, space_ == Space::matrix ? matrix_operand(activations, true) : operand(activations, full, index));
    a = activations_.end() - 1;
  }
  if (space_ == Space::matrix) return kiln::matmul_nt(a->second, matrix_operand(weights, false));
  const Axes full = product_axes(false, false, true, product_.k), index = product_axes(false, false, true, 1);
  return kiln::row_sum(a->second * operand(weights, full, index));
}

kiln::Expr KernelDraft::sums_of(const TensorView& parts) {
  return kiln::row_sum(input(parts, product_axes(true, true, true, parts.ne[0]), 0, false));
}

kiln::Expr KernelDraft::result_of(const TensorView& view) {
  const Axes full = product_axes(true, true, true, 1);
  if (view.ne == ne_ && view.is_dense()) return input(view, full, 0, true);
  if (view.ne == Extents{ne_[0], 1, 1, 1} && view.stride[0] == 1) {
    Axes axes;
    axes.add("n", ne_[0]);
    axes.add("", 1);
    return input(view, std::move(axes), 0, false);
  }
  return through(view, 1, 1, full, repeated(view, ne_));
}

kiln::Expr KernelDraft::number(double value) {
  const std::string name = next("s");
  arguments_.emplace_back(name, value);
  return kiln::scalar(name);
}

kiln::Expr KernelDraft::columns(const std::vector<float>& values) {
  return row_of(graph_.constant(values), static_cast<std::int64_t>(values.size()));
}

kiln::Expr KernelDraft::row_of(const void* data, std::int64_t cols) {
  return input(dense_view(const_cast<void*>(data), kiln::f32, {cols, 1, 1, 1}), {{cols}, {cols}}, 0, false);
}

kiln::Expr KernelDraft::along(int d, void* data, kiln::DType dtype) {
  Extents ne = {1, 1, 1, 1};
  ne[static_cast<std::size_t>(d)] = ne_[static_cast<std::size_t>(d)];
  return input(dense_view(data, dtype, ne), row_axes(ne, 1), 0, false);
}

void copy(GraphBuilder& graph, const TensorView& from, const TensorView& to) {
  KernelDraft draft(graph, Space::flat, to.ne);
  draft.write(to, draft.read(from));
  draft.launch("copied");
}

} // namespace kiln_ggml
