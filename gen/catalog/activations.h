// Entries of the catalogue that go element by element: activations and sums.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec swiglu_quant(const CatalogOptions& options);
KernelSpec gelu_mul(const CatalogOptions& options);
KernelSpec silu_mul(const CatalogOptions& options);
KernelSpec clamped_swiglu(const CatalogOptions& options);
KernelSpec add_bias_gelu(const CatalogOptions& options);
KernelSpec scaled_add(const CatalogOptions& options);

} // namespace kiln
