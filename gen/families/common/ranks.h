// Ranked rows: what the families have in common whose kernels rank an input, and compute one value a rank or a row.
#pragma once
#include "gen/plan/plan.h"

namespace kiln {

// The row_top of a body, which has one; and the input that it ranks.
const Expr& top_of(const Body& body);
const TensorPlan& ranked_tensor(const Body& body);

[[noreturn]] void refuse_ranks(const Body& body, const std::string& fact, const std::string& remedy);

// Throws UserError unless the body has one row_top, of an input, and computes values of ranks and rows alone: elements are read twice, the
// second time by column, so they come from memory as they are.
void require_ranked_inputs(const Body& body);

} // namespace kiln
