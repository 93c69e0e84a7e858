// Graph: walks over the nodes of a spec, without recursion, so that long chains cannot overflow the stack.
#pragma once
#include "gen/spec/spec.h"
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace kiln {

// Every node reachable from `roots`, each once, operands before users; depth first from the first root.
std::vector<Expr> nodes_in_order(std::span<const Expr> roots);
std::vector<Expr> nodes_in_order(const KernelSpec& spec);

// Merges structurally equal nodes: the same spec with every subexpression built once. Text, plans and code should not
// depend on whether a program spelled row_mean(h * h) twice or held it in a variable.
KernelSpec merge_equal_nodes(const KernelSpec& spec);

// What one walk over a spec finds, so that no stage behind it walks again.
struct SpecGraph {
  SpecGraph(const KernelSpec& spec); // merges equal subexpressions; implicit on purpose: validate(spec)
  // Without merging: for a spec that is merged already, or whose leaves alone are asked for.
  static SpecGraph as_spelled(KernelSpec spec) { return {std::move(spec), AsSpelled{}}; }

  KernelSpec spec;
  std::vector<Expr> nodes;               // each once, operands before users
  std::vector<Expr> inputs, scalars;     // in order of first use; equal ones once
  std::vector<Dim> dynamic_dims;         // of the inputs, in order of first use
  std::vector<std::int64_t> group_sizes; // of group operations, each once
  std::set<std::string> names;           // of inputs, scalars, run-time sizes and outputs
  std::set<OpKind> kinds;                // of the nodes
  bool has_reductions = false;           // of rows or groups, ranks and running sums
  std::set<const Node*> ranked;          // values of one a rank: row_top, pick, and what is computed from them

  bool has(OpKind kind) const { return kinds.contains(kind); }

private:
  struct AsSpelled {};
  SpecGraph(KernelSpec spec, AsSpelled);
};

} // namespace kiln
