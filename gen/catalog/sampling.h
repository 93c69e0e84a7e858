// Sampling: entries over the logits of a vocabulary.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec softmax(const CatalogOptions& options);
KernelSpec softmax_temperature(const CatalogOptions& options);
KernelSpec argmax_rows(const CatalogOptions& options);
KernelSpec sample_gumbel(const CatalogOptions& options);
KernelSpec sample_top_k_top_p(const CatalogOptions& options);

} // namespace kiln
