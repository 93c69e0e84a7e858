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

struct Operation {
  int op = 0; // ggml_op
  Kind kind = Kind::none;
  bool (*supports)(const ggml_tensor& node) = nullptr;
  kiln::Expr (*build)(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x) = nullptr; // row
  void (*lower)(GraphBuilder& graph, const ggml_tensor& node) = nullptr;                           // alone, write
};

Operation operation_of(const ggml_tensor& node);
bool supports(const ggml_tensor& node); // right for every input that such a node can have

// ---- ssm_conv.cpp, recurrent.cpp
bool supports_ssm_conv(const ggml_tensor& node);
void lower_ssm_conv(GraphBuilder& graph, const ggml_tensor& node);
bool supports_gated_delta(const ggml_tensor& node);
void lower_gated_delta(GraphBuilder& graph, const ggml_tensor& node);
bool supports_ssm_scan(const ggml_tensor& node);
void lower_ssm_scan(GraphBuilder& graph, const ggml_tensor& node);

// ---- row operations (row_ops.cpp, rope.cpp)
bool supports_norm(const ggml_tensor& node);
bool supports_soft_max(const ggml_tensor& node);
bool supports_rope(const ggml_tensor& node);
bool supports_reduction(const ggml_tensor& node);
bool supports_argmax(const ggml_tensor& node);
bool supports_ranks(const ggml_tensor& node);
bool supports_group_norm(const ggml_tensor& node);
kiln::Expr build_norm(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_rms_norm(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_l2_norm(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_soft_max(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_sum_rows(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_mean(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_cumsum(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_argmax(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
kiln::Expr build_rope(KernelDraft& draft, const ggml_tensor& node, const kiln::Expr& x);
void lower_group_norm(GraphBuilder& graph, const ggml_tensor& node);
void lower_ranks(GraphBuilder& graph, const ggml_tensor& node);
void lower_sum(GraphBuilder& graph, const ggml_tensor& node);

// ---- products (product_ops.cpp)
bool supports_product(const ggml_tensor& node);
ProductSize size_of_product(const ggml_tensor& node);
bool multiplies_by_matrix(const ggml_tensor& node);
kiln::Expr build_product(KernelDraft& draft, GraphBuilder& graph, const ggml_tensor& node);
bool supports_product_by_id(const ggml_tensor& node); // product_id_op.cpp
void lower_product_by_id(GraphBuilder& graph, const ggml_tensor& node);

// ---- attention (attention_op.cpp)
bool supports_attention(const ggml_tensor& node);
// What queries are rounded to; nothing if they are copied anyway, to heads of another size.
std::optional<kiln::DType> type_of_queries(const ggml_tensor& node);
// `queries` in the order of the result and of that type, if another kernel has made them; else null.
void lower_attention(GraphBuilder& graph, const ggml_tensor& node, void* queries);
std::vector<float> alibi_slopes(std::int64_t heads, float max_bias); // one factor a head (row_ops.cpp)

// ---- copies (movement_ops.cpp) and rows by index (index_ops.cpp)
bool supports_copy(const ggml_tensor& node);
bool supports_movement(const ggml_tensor& node);
bool supports_im2col(const ggml_tensor& node);
bool supports_made(const ggml_tensor& node);
bool supports_get_rows(const ggml_tensor& node);
bool supports_set_rows(const ggml_tensor& node);
bool supports_add_id(const ggml_tensor& node);
void lower_copy(GraphBuilder& graph, const ggml_tensor& node);
void lower_movement(GraphBuilder& graph, const ggml_tensor& node);
void lower_concat(GraphBuilder& graph, const ggml_tensor& node);
void lower_set(GraphBuilder& graph, const ggml_tensor& node);
void lower_made(GraphBuilder& graph, const ggml_tensor& node);
void lower_diag_mask(GraphBuilder& graph, const ggml_tensor& node);
void lower_get_rows(GraphBuilder& graph, const ggml_tensor& node);
void lower_set_rows(GraphBuilder& graph, const ggml_tensor& node);
void lower_add_id(GraphBuilder& graph, const ggml_tensor& node);

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
