// The entries of the catalogue: the function that makes the spec of each, and what their files share.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

// activations.cpp: element by element
KernelSpec swiglu_quant(const CatalogOptions& options);
KernelSpec gelu_mul(const CatalogOptions& options);
KernelSpec silu_mul(const CatalogOptions& options);
KernelSpec clamped_swiglu(const CatalogOptions& options);
KernelSpec add_bias_gelu(const CatalogOptions& options);
KernelSpec scaled_add(const CatalogOptions& options);
// attention.cpp: one query a sequence, causal by the lengths alone
KernelSpec attention_decode(const CatalogOptions& options);
KernelSpec attention_paged(const CatalogOptions& options);
// experts.cpp: tokens and their experts
KernelSpec moe_sort(const CatalogOptions& options);
KernelSpec grouped_gemm(const CatalogOptions& options);
KernelSpec grouped_gemm_swiglu(const CatalogOptions& options);
KernelSpec grouped_gemm_sum(const CatalogOptions& options);
// lora.cpp: products with the adapters of LoRA
KernelSpec lora_shrink(const CatalogOptions& options);
KernelSpec lora_expand_add(const CatalogOptions& options);
KernelSpec gemm_lora(const CatalogOptions& options);
KernelSpec gemm_lora_add(const CatalogOptions& options);
// matrices.cpp: blocks of a row: Hadamard transforms and Sinkhorn normalisations
KernelSpec hadamard_blocks(const CatalogOptions& options);
KernelSpec sinkhorn_matrices(const CatalogOptions& options);
// products.cpp: skinny products, the projections of a language model while it decodes
KernelSpec gemm(const CatalogOptions& options);
KernelSpec gemm_quant(const CatalogOptions& options);
KernelSpec router(const CatalogOptions& options);
KernelSpec gemm_bias(const CatalogOptions& options);
KernelSpec gemm_residual(const CatalogOptions& options);
KernelSpec gemm_gelu_residual_row_quant(const CatalogOptions& options);
KernelSpec gemm_swiglu_quant(const CatalogOptions& options);
KernelSpec gemm_w8a16(const CatalogOptions& options);
KernelSpec gemm_w4a16(const CatalogOptions& options);
KernelSpec gemm_w_mxfp4(const CatalogOptions& options);
KernelSpec gemm_mx(const CatalogOptions& options);
KernelSpec gemm_dynamic_quant(const CatalogOptions& options);
KernelSpec gemm_block_scaled(const CatalogOptions& options);
// routing.cpp: the experts of each token, and norms and merges beside them
KernelSpec layernorm_modulate(const CatalogOptions& options);
KernelSpec lse_merge(const CatalogOptions& options);
KernelSpec topk_softmax(const CatalogOptions& options);
// sampling.cpp: over the logits of a vocabulary
KernelSpec softmax(const CatalogOptions& options);
KernelSpec softmax_temperature(const CatalogOptions& options);
KernelSpec argmax_rows(const CatalogOptions& options);
KernelSpec sample_gumbel(const CatalogOptions& options);
KernelSpec sample_top_k_top_p(const CatalogOptions& options);
// states.cpp: a state in place, by slot: recurrent layers of hybrid models, and what stands behind them
KernelSpec conv1d_update(const CatalogOptions& options);
KernelSpec gated_delta_update(const CatalogOptions& options);
KernelSpec ssm_update(const CatalogOptions& options);
KernelSpec gated_norm(const CatalogOptions& options);

// Rows are a run-time size, up to options.max_rows if that is given.
Dim dynamic_rows(const CatalogOptions& options);
Expr activation(const char* name, const CatalogOptions& options); // [rows, cols]

// The experts of each row of `logits`, and their weights; `bias` is one an expert.
KernelSpec routed(const char* name, const Expr& logits, const Expr& bias, const CatalogOptions& options);

// Nothing when the options are those of a kernel: blocks, or matrices, of a size that there is, and whole ones; heads, sizes, tokens and
// the type of a state.
std::optional<Refusal> why_no_blocks_of_hadamard(const std::string& subject, const CatalogOptions& options);
std::optional<Refusal> why_no_matrices_of_sinkhorn(const std::string& subject, const CatalogOptions& options);
std::optional<Refusal> why_no_state(const std::string& subject, const CatalogOptions& options);

} // namespace kiln
