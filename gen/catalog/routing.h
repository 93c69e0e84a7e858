// Entries of the catalogue about experts, and norms and merges beside them.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec layernorm_modulate(const CatalogOptions& options);
KernelSpec lse_merge(const CatalogOptions& options);
KernelSpec topk_softmax(const CatalogOptions& options);
// The experts of each row of `logits`, and their weights; `bias` is one an expert.
KernelSpec routed(const char* name, const Expr& logits, const Expr& bias, const CatalogOptions& options);

} // namespace kiln
