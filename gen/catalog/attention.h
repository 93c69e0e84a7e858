// Entries of the catalogue that are attention of one query a sequence, causal by the lengths alone.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec attention_decode(const CatalogOptions& options);
KernelSpec attention_paged(const CatalogOptions& options);

} // namespace kiln
