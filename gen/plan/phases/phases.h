// Phases: a spec as two specs in sequence, the second of which reads what the first leaves in the workspace. One launch computes both.
#pragma once
#include "gen/spec/graph.h"
#include <vector>

namespace kiln {

struct Phases {
  KernelSpec first, second;
  std::vector<Expr> between; // inputs of the second, outputs of the first
};

// Whether rows that a product multiplies are computed from another product.
bool has_inner_products(const SpecGraph& graph);

// With inner products: what they read, and what reads them. Else the products of a spec with what is pointwise of them, and what needs
// whole rows of it. Every output belongs to one of the two, to the first if it can. An output of the second that is in place of an input
// that only the first reads is in place of nothing there.
Phases split_phases(const SpecGraph& graph);

} // namespace kiln
