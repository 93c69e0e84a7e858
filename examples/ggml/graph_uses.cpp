// Uses: how often nodes are used by a whole graph, of which ggml gives a backend a part.
#include "examples/ggml/engine.h"

namespace kiln_ggml {
namespace {

// ggml's own hash: the address without the bits that alignment leaves zero, and the next free slot.
std::size_t slot_of(const ggml_cgraph& graph, const ggml_tensor* tensor) {
  const auto& set = graph.visited_hash_set;
  std::size_t slot = (reinterpret_cast<std::uintptr_t>(tensor) >> 4) % set.size;
  for (std::size_t tried = 0; tried < set.size; ++tried, slot = (slot + 1) % set.size) {
    if ((set.used[slot / 32] >> (slot % 32) & 1) == 0) return set.size;
    if (set.keys[slot] == tensor) return slot;
  }
  return set.size;
}

} // namespace

std::vector<int> use_counts(const ggml_cgraph& graph) {
  auto* const g = const_cast<ggml_cgraph*>(&graph);
  const int n = ggml_graph_n_nodes(g);
  if (graph.n_nodes != n || graph.nodes != ggml_graph_nodes(g) || graph.use_counts == nullptr || graph.visited_hash_set.size == 0)
    return {};
  std::vector<int> uses;
  for (int i = 0; i < n; ++i) {
    const std::size_t slot = slot_of(graph, graph.nodes[i]);
    if (slot == graph.visited_hash_set.size) return {};
    uses.push_back(graph.use_counts[slot]);
  }
  return uses;
}

} // namespace kiln_ggml
