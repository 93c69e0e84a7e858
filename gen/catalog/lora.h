// Low-rank additions: entries of products with the adapters of LoRA.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec lora_shrink(const CatalogOptions& options);
KernelSpec lora_expand_add(const CatalogOptions& options);
KernelSpec gemm_lora(const CatalogOptions& options);
KernelSpec gemm_lora_add(const CatalogOptions& options);

} // namespace kiln
