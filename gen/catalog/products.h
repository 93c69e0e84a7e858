// Entries of the catalogue that are skinny products, the projections of a language model while it decodes.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

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

} // namespace kiln
