// Entries of the catalogue for tokens and their experts.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec moe_sort(const CatalogOptions& options);
KernelSpec grouped_gemm(const CatalogOptions& options);
KernelSpec grouped_gemm_swiglu(const CatalogOptions& options);
KernelSpec grouped_gemm_sum(const CatalogOptions& options);

} // namespace kiln
