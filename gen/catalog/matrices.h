// Entries of the catalogue that transform blocks of a row: Hadamard transforms and Sinkhorn normalisations.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec hadamard_blocks(const CatalogOptions& options);
KernelSpec sinkhorn_matrices(const CatalogOptions& options);

// Nothing when the columns are whole blocks, or matrices, of a size that there is.
std::optional<Refusal> why_no_blocks_of_hadamard(const std::string& subject, const CatalogOptions& options);
std::optional<Refusal> why_no_matrices_of_sinkhorn(const std::string& subject, const CatalogOptions& options);

} // namespace kiln
