// Entries of the catalogue that update a state in place, by slot: recurrent layers of hybrid models, and what stands behind them.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec conv1d_update(const CatalogOptions& options);
KernelSpec gated_delta_update(const CatalogOptions& options);
KernelSpec ssm_update(const CatalogOptions& options);
KernelSpec gated_norm(const CatalogOptions& options);

// Nothing when heads, sizes, tokens and the type of a state are those of a kernel.
std::optional<Refusal> why_no_state(const std::string& subject, const CatalogOptions& options);

} // namespace kiln
