// Operation: what Kiln does with a node of ggml's graph. The one table that supports_op, the partitioner and the compiler ask.
#pragma once
#include "examples/ggml/kernel_draft.h"

namespace kiln_ggml {

enum class Kind : std::uint8_t {
  none,      // not Kiln's
  view,      // nothing to do
  pointwise, // pointwise_ops.h
  row,       // an expression of the rows of src[0]: norms, softmax, rope, reductions
  product,   // matrix products
  write,     // rows of a cache by index, with what makes them, and other writes beside
  attention, // with what makes its queries
  alone,     // kernels of its own: copies, rows by index
};

using Supports = bool(const ggml_tensor& node);
using BuildRow = kiln::Expr(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
using Lower = void(GraphBuilder& graph, const ggml_tensor& node);

struct Operation {
  int op = 0; // ggml_op
  Kind kind = Kind::none;
  Supports* supports = nullptr;
  BuildRow* build = nullptr; // row
  Lower* lower = nullptr;    // alone, write
};

Operation operation_of(const ggml_tensor& node);
bool supports(const ggml_tensor& node); // right for every input that such a node can have

// ---- ssm_conv.cpp, recurrent.cpp
Supports supports_ssm_conv, supports_gated_delta, supports_ssm_scan;
Lower lower_ssm_conv, lower_gated_delta, lower_ssm_scan;

// ---- row operations (row_ops.cpp, rope.cpp)
Supports supports_norm, supports_soft_max, supports_rope, supports_reduction, supports_argmax, supports_ranks, supports_group_norm;
BuildRow build_norm, build_rms_norm, build_l2_norm, build_soft_max, build_sum_rows, build_mean, build_cumsum, build_argmax, build_rope;
Lower lower_group_norm, lower_ranks, lower_sum;

// ---- products (product_ops.cpp)
Supports supports_product, supports_product_by_id;
ProductSize size_of_product(const ggml_tensor& node);
bool multiplies_by_matrix(const ggml_tensor& node);
kiln::Expr build_product(KernelDraft& draft, GraphBuilder& graph, const ggml_tensor& node);
Lower lower_product_by_id; // product_id_op.cpp

// ---- attention (attention_op.cpp)
Supports supports_attention;
// What queries are rounded to; nothing if they are copied anyway, to heads of another size.
std::optional<kiln::DType> type_of_queries(const ggml_tensor& node);
// `queries` in the order of the result and of that type, if another kernel has made them; else null.
void lower_attention(GraphBuilder& graph, const ggml_tensor& node, void* queries);
std::vector<float> alibi_slopes(std::int64_t heads, float max_bias); // one factor a head (row_ops.cpp)

// ---- copies (movement_ops.cpp) and rows by index (index_ops.cpp)
Supports supports_copy, supports_movement, supports_im2col, supports_made, supports_get_rows, supports_set_rows, supports_add_id;
Lower lower_copy, lower_movement, lower_concat, lower_set, lower_made, lower_diag_mask, lower_get_rows, lower_set_rows, lower_add_id;

// The same elements without gaps, and aligned: `view`, or a copy in scratch memory. Indices are moved as they are (index_ops.cpp).
TensorView dense(GraphBuilder& graph, const TensorView& view);
TensorView dense_indices(GraphBuilder& graph, const ggml_tensor& tensor);

// A tensor of blocks as floats in scratch memory (quantised.cpp); other tensors as they are.
bool can_decode(ggml_type type);
// The products of rows x [k, m] with rows of blocks [k, n], summed within each part of a block: [parts of a row, n, m]. Blocks are decoded
// in the registers of the kernel that multiplies them.
TensorView block_products(GraphBuilder& graph, const ggml_tensor& weights, const TensorView& x);
bool can_decode_view(const ggml_tensor& tensor); // whole blocks, which may have gaps between them
TensorView decoded(GraphBuilder& graph, const ggml_tensor& tensor);

// Dense floats as blocks without gaps (quantise.cpp): q8_0, q4_0, q4_1.
bool can_encode(ggml_type type);
void encode(GraphBuilder& graph, const TensorView& x, ggml_type type, void* to);

} // namespace kiln_ggml
