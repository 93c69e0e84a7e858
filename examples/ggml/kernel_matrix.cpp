// KernelDraft: the space of matrix instructions, whose kernels have a number for n and k, and a launch for every 64 rows.
#include "examples/ggml/kernel_draft.h"
#include <algorithm>

namespace kiln_ggml {
namespace {

constexpr std::int64_t few_rows = 16, many_rows = 64; // bounds of a launch: a kernel each
constexpr std::int64_t min_work = 1 << 10;            // elements of weights, below which sums of rows do

bool rows_of_16_bytes(const TensorView& view) { return view.ne[0] * static_cast<std::int64_t>(bytes_of(view.dtype)) % 16 == 0; }

} // namespace

bool has_matrix_form(const ProductSize& size, const TensorView& a, const TensorView& w) {
  if (size.has_batches() || size.n * size.k < min_work || size.k > 1 << 24 || size.n > 1 << 24) return false;
  const bool types = a.dtype == kiln::f32 ? w.dtype == kiln::f32 || w.dtype == kiln::f16 || w.dtype == kiln::bf16
                                          : a.dtype == w.dtype && (a.dtype == kiln::f16 || a.dtype == kiln::bf16);
  return types && w.is_dense() && w.is_aligned() && rows_of_16_bytes(w) && rows_of_16_bytes(a);
}

kiln::Dim KernelDraft::block_rows() const { return kiln::dynamic("m", 1, product_.m <= few_rows ? few_rows : many_rows); }

kiln::Expr KernelDraft::matrix_operand(const TensorView& view, bool by_row) {
  const TensorView dense = view.is_dense() && view.is_aligned() ? view : dense_copy(view, view.ne);
  const kiln::Dim rows = by_row ? block_rows() : kiln::Dim(view.ne[1]);
  const kiln::Expr x = input(dense, {{rows, view.ne[0]}, {view.ne[1], view.ne[0]}}, 0, false);
  if (by_row) by_block_.insert(x->name);
  return x;
}

kiln::Expr KernelDraft::matrix_result(const TensorView& view) {
  if (view.count() == 1) return input(view, {}, 0, false);
  if (view.ne == Extents{ne_[0], 1, 1, 1} && view.stride[0] == 1 && view.is_aligned()) return input(view, {{ne_[0]}, {ne_[0]}}, 0, false);
  const bool whole = view.ne == ne_ && view.is_dense() && view.is_aligned();
  const kiln::Expr x = input(whole ? view : dense_copy(view, ne_), {{block_rows(), ne_[0]}, {ne_[1], ne_[0]}}, 0, whole);
  by_block_.insert(x->name);
  return x;
}

void KernelDraft::launch_blocks(const kiln::KernelSpec& spec) {
  for (std::int64_t first = 0; first < product_.m; first += many_rows) {
    const std::int64_t rows = std::min(many_rows, product_.m - first);
    std::vector<kiln::Argument> arguments;
    for (const kiln::Argument& a : arguments_) {
      if (!by_block_.contains(a.name)) {
        arguments.push_back(a);
        continue;
      }
      kiln::DeviceTensor part = std::get<kiln::DeviceTensor>(a.value);
      const auto row_bytes = part.shape[1] * static_cast<std::int64_t>(bytes_of(part.dtype));
      part.data = static_cast<std::byte*>(part.data) + first * row_bytes;
      part.shape[0] = rows;
      arguments.emplace_back(a.name, std::move(part));
    }
    graph_.launch(spec, std::move(arguments));
  }
}

} // namespace kiln_ggml
