// The entries of the catalogue: the function that makes the spec of each, and what their files share.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

using MakeSpec = KernelSpec(const CatalogOptions& options);
// activations.cpp: element by element
MakeSpec swiglu_quant, gelu_mul, silu_mul, clamped_swiglu, add_bias_gelu, scaled_add;
// attention.cpp: one query a sequence, causal by the lengths alone
MakeSpec attention_decode, attention_paged;
// experts.cpp: tokens and their experts
MakeSpec moe_sort, grouped_gemm, grouped_gemm_swiglu, grouped_gemm_sum;
// lora.cpp: products with the adapters of LoRA
MakeSpec lora_shrink, lora_expand_add, gemm_lora, gemm_lora_add;
// matrices.cpp: blocks of a row: Hadamard transforms and Sinkhorn normalisations
MakeSpec hadamard_blocks, sinkhorn_matrices;
// products.cpp: skinny products, the projections of a language model while it decodes
MakeSpec gemm, gemm_quant, router, gemm_bias, gemm_residual, gemm_gelu_residual_row_quant, gemm_swiglu_quant, gemm_w8a16, gemm_w4a16,
    gemm_w_mxfp4, gemm_mx, gemm_dynamic_quant, gemm_block_scaled;
// routing.cpp: the experts of each token, and norms and merges beside them
MakeSpec layernorm_modulate, lse_merge, topk_softmax;
// sampling.cpp: over the logits of a vocabulary
MakeSpec softmax, softmax_temperature, argmax_rows, sample_gumbel, sample_top_k_top_p;
// states.cpp: a state in place, by slot: recurrent layers of hybrid models, and what stands behind them
MakeSpec conv1d_update, gated_delta_update, ssm_update, gated_norm;

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
