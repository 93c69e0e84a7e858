// From a graph of ggml to launches: partition, a kernel for each region, compiled and bound.
#pragma once
#include "examples/ggml/partition.h"

namespace kiln_ggml {

struct RegionNote { // for KILN_GGML_EXPLAIN and for counts
  std::vector<const ggml_tensor*> nodes;
  std::size_t launches = 0;
  std::string ended;
};

struct GraphPlan {
  CompiledGraph compiled;
  std::vector<RegionNote> regions; // of their nodes only the names may be read later: explain() does so at once
};

// The launches of a graph, which `graph` collects without compiling them.
std::vector<RegionNote> lower_graph(GraphBuilder& graph, const Partition& parts);

GraphPlan compile_graph(kiln::Jit& jit, const kiln::Device& device, const std::vector<const ggml_tensor*>& nodes,
                        const std::vector<int>& uses);

// A line a region: its nodes, its launches, why it ended.
std::string explain(const GraphPlan& plan);

} // namespace kiln_ggml
