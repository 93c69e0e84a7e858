// Products: ggml's MUL_MAT by matrix instructions or as sums of rows, with every product of two elements exact in f32.
#include "examples/ggml/operations/operations.h"

namespace kiln_ggml {
namespace {

// More rows are worth floats in memory, which matrix instructions multiply: a row of sums reads all weights again.
constexpr std::int64_t max_rows_of_blocks = 8;

// Whether blocks of weights are decoded where they are multiplied.
bool multiplies_blocks(const ggml_tensor& node) {
  const ProductSize size = size_of_product(node);
  return !is_float(node.src[0]->type) && !size.has_batches() && size.m <= max_rows_of_blocks;
}

} // namespace

bool supports_product(const ggml_tensor& node) {
  const ggml_tensor &weights = *node.src[0], &x = *node.src[1];
  if (!is_float(x.type) || node.type != GGML_TYPE_F32 || (!is_float(weights.type) && !can_decode(weights.type))) return false;
  if (!is_float(weights.type) && !ggml_is_contiguous(&weights)) return false;
  return x.ne[2] % weights.ne[2] == 0 && x.ne[3] % weights.ne[3] == 0;
}

ProductSize size_of_product(const ggml_tensor& node) {
  const ggml_tensor &weights = *node.src[0], &x = *node.src[1];
  return {.batch3 = weights.ne[3],
          .repeat3 = x.ne[3] / weights.ne[3],
          .batch2 = weights.ne[2],
          .repeat2 = x.ne[2] / weights.ne[2],
          .m = x.ne[1],
          .n = weights.ne[1],
          .k = x.ne[0]};
}

bool multiplies_by_matrix(const ggml_tensor& node) {
  if (multiplies_blocks(node)) return false;
  const ggml_tensor& w = *node.src[0];
  const Extents ne = {w.ne[0], w.ne[1], w.ne[2], w.ne[3]};
  const TensorView weights = is_float(w.type) ? view_of(w) : dense_view(nullptr, kiln::f32, ne); // these are decoded before
  return has_matrix_form(size_of_product(node), view_of(*node.src[1]), weights);
}

kiln::Expr build_product(KernelDraft& draft, GraphBuilder& graph, const ggml_tensor& node) {
  if (multiplies_blocks(node)) return draft.sums_of(block_products(graph, *node.src[0], dense(graph, view_of(*node.src[1]))));
  return draft.product_of(view_of(*node.src[1]), decoded(graph, *node.src[0]));
}

} // namespace kiln_ggml
