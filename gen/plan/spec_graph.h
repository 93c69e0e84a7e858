// SpecGraph: what one walk over a spec finds, so that no stage behind it walks again.
#pragma once
#include "gen/spec/spec.h"
#include <cstdint>
#include <vector>

namespace kiln {

struct SpecGraph {
  SpecGraph(const KernelSpec& spec); // merges equal subexpressions; implicit on purpose: validate(spec)
  // The graph of a spec whose equal subexpressions are merged already.
  static SpecGraph of_merged(KernelSpec merged) { return {std::move(merged), Merged{}}; }

  KernelSpec spec;                       // equal subexpressions merged
  std::vector<Expr> nodes;               // each once, operands before users
  std::vector<Expr> inputs, scalars;     // in order of first use
  std::vector<Dim> dynamic_dims;         // of the inputs, in order of first use
  std::vector<std::int64_t> group_sizes; // of group operations, each once
  bool has_products = false;
  bool has_reductions = false; // of rows or groups

private:
  struct Merged {};
  SpecGraph(KernelSpec merged, Merged);
};

} // namespace kiln
