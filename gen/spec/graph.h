// Graph: walks over the nodes of a spec, without recursion, so that long chains cannot overflow the stack.
#pragma once
#include "gen/spec/spec.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

// Every node reachable from `roots`, each once, operands before users; depth first from the first root.
std::vector<Expr> nodes_in_order(std::span<const Expr> roots);
std::vector<Expr> nodes_in_order(const KernelSpec& spec);

// Merges structurally equal nodes: the same spec with every subexpression built once. Text, plans and code should not
// depend on whether a program spelled row_mean(h * h) twice or held it in a variable.
KernelSpec merge_equal_nodes(const KernelSpec& spec);

} // namespace kiln
