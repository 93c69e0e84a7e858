// Whole rows: what of a product's epilogue its tiles compute, and what needs all columns of a row.
#pragma once
#include "gen/plan/body.h"
#include "gen/plan/product.h"

namespace kiln {

std::int64_t bound_of_rows(const Product& product); // of m

// The most columns that the epilogue reduces together, if all that it reduces are groups of columns that tiles have whole, in LDS with
// `rows` rows; else 0. Columns that share bytes count as a group.
int group_in_tile(const Body& epilogue, std::span<const Product> products, std::int64_t rows);

// Whether the epilogue reduces rows otherwise or has one value a row, and so has to wait for all of C.
bool reduces_rows(const Body& epilogue, std::span<const Product> products, std::int64_t rows);

// The same of rows that are too long for the one workgroup that has all of C: they are a phase of their own. Throws UserError for ranks of
// such rows.
bool reduces_long_rows(const Body& epilogue, std::span<const Product> products);

} // namespace kiln
