// Entries of the catalogue that transform blocks of a row: Hadamard transforms and Sinkhorn normalisations.
#pragma once
#include "gen/catalog/catalog.h"

namespace kiln {

KernelSpec hadamard_blocks(const CatalogOptions& options);
KernelSpec sinkhorn_matrices(const CatalogOptions& options);

// Throws UserError with that subject unless the columns are whole blocks, or matrices, of a size that there is.
void require_blocks_of_hadamard(const std::string& subject, const CatalogOptions& options);
void require_matrices_of_sinkhorn(const std::string& subject, const CatalogOptions& options);

} // namespace kiln
