// What the files of the catalogue share: their build functions, and the tensors nearly every one of them begins with.
#pragma once
#include "gen/catalog/catalog.h"
#include "gen/spec/math.h"

namespace kiln::catalog_entries {

inline constexpr double norm_epsilon = 1e-6;   // of RMS and layer norm: Llama's rms_norm_eps
inline constexpr double least_absmax = 1e-12;  // keeps the scale of an all-zero row above zero

inline Shape activation_shape(const CatalogOptions& options) { return {dynamic("rows"), options.cols}; }
inline Expr activation(std::string name, const CatalogOptions& options) {
  return input(std::move(name), options.dtype, activation_shape(options));
}
// One value a column: norm weights, biases.
inline Expr column_vector(std::string name, const CatalogOptions& options) {
  return input(std::move(name), options.dtype, {options.cols});
}
// One f32 for the whole tensor, in device memory, as quantisation toolkits leave it.
inline Expr tensor_scale() { return input("scale", f32, {}); }
// The scale that maps the largest magnitude to the largest fp8 number.
inline Expr scale_of(const Expr& absmax, DType fp8) { return max(absmax, least_absmax) / max_finite(fp8); }

// normalise.cpp
KernelSpec add_rmsnorm_quant(const CatalogOptions& options);
KernelSpec add_rmsnorm_dynamic_quant(const CatalogOptions& options);
KernelSpec rmsnorm(const CatalogOptions& options);
KernelSpec layernorm(const CatalogOptions& options);
KernelSpec softmax(const CatalogOptions& options);
// activate.cpp
KernelSpec swiglu_quant(const CatalogOptions& options);
KernelSpec gelu_mul(const CatalogOptions& options);
KernelSpec silu_mul(const CatalogOptions& options);
KernelSpec add_bias_gelu(const CatalogOptions& options);
KernelSpec scaled_add(const CatalogOptions& options);
// quantise.cpp
KernelSpec per_token_quant(const CatalogOptions& options);
KernelSpec group_quant(const CatalogOptions& options);
KernelSpec dequant(const CatalogOptions& options);
KernelSpec group_dequant(const CatalogOptions& options);
KernelSpec cast_quant(const CatalogOptions& options);
// gemm.cpp
KernelSpec gemm(const CatalogOptions& options);
KernelSpec gemm_bias(const CatalogOptions& options);
KernelSpec gemm_residual(const CatalogOptions& options);
KernelSpec gemm_swiglu_quant(const CatalogOptions& options);
KernelSpec gemm_w8a16(const CatalogOptions& options);
KernelSpec gemm_w4a16(const CatalogOptions& options);
KernelSpec gemm_block_scaled(const CatalogOptions& options);

} // namespace kiln::catalog_entries
