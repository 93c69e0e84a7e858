// GraphBuilder: compiles what was collected.
#include "examples/ggml/graph_builder.h"
#include <utility>

namespace kiln_ggml {

void* GraphBuilder::scratch(std::size_t bytes) {
  graph_.memory.push_back(device_.allocate(bytes, "scratch of a ggml graph"));
  return graph_.memory.back().data();
}

void* GraphBuilder::constant(std::span<const std::byte> bytes) {
  void* const data = scratch(bytes.size());
  device_.copy_to_device(data, bytes);
  return data;
}

void GraphBuilder::launch(kiln::KernelSpec spec, std::vector<kiln::Argument> arguments, std::vector<std::string> settings) {
  pending_.push_back({std::move(spec), std::move(arguments), std::move(settings)});
}

CompiledGraph GraphBuilder::finish() {
  std::vector<std::shared_future<kiln::Kernel>> kernels;
  for (const Pending& p : pending_) kernels.push_back(jit_.compile_async(p.spec, p.settings));
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    graph_.kernels.push_back(device_.load(kernels[i].get()));
    graph_.launches.push_back(graph_.kernels.back().bind(pending_[i].arguments));
    graph_.names.push_back(pending_[i].spec.name());
  }
  return std::move(graph_);
}

} // namespace kiln_ggml
