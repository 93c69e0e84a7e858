// GraphBuilder: collects the launches of a graph, then compiles all their kernels at once and binds them.
#pragma once
#include "examples/ggml/tensor_view.h"
#include <kiln/kiln.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln_ggml {

// What a graph has become: launches in order, with the memory that they need beside ggml's.
struct CompiledGraph {
  std::vector<kiln::DeviceMemory> memory; // scratch, and index maps
  std::vector<kiln::BoundKernel> launches;
  std::vector<kiln::LoadedKernel> kernels; // live as long as their launches
  std::vector<std::string> names;          // of the launches, for KILN_GGML_EXPLAIN
};

class GraphBuilder {
public:
  GraphBuilder(kiln::Jit& jit, const kiln::Device& device) : jit_(jit), device_(device) {}

  void* scratch(std::size_t bytes) {
    graph_.memory.push_back(device_.allocate(bytes, "scratch of a ggml graph"));
    return graph_.memory.back().data();
  }

  void* constant(std::span<const std::byte> bytes) { // uploaded now, there for every launch
    void* const data = scratch(bytes.size());
    device_.copy_to_device(data, bytes);
    return data;
  }

  template <typename T> void* constant(const std::vector<T>& values) { return constant(std::as_bytes(std::span(values))); }

  void launch(kiln::KernelSpec spec, std::vector<kiln::Argument> arguments, std::vector<std::string> settings = {}) {
    pending_.push_back({std::move(spec), std::move(arguments), std::move(settings)});
  }
  std::size_t launches() const { return pending_.size(); }

  // Throws what Jit::compile and LoadedKernel::bind throw
  CompiledGraph finish() {
    std::vector<std::shared_future<kiln::Kernel>> kernels;
    for (const Pending& p : pending_) kernels.push_back(jit_.compile_async(p.spec, p.settings));
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      graph_.kernels.push_back(device_.load(kernels[i].get()));
      graph_.launches.push_back(graph_.kernels.back().bind(pending_[i].arguments));
      graph_.names.push_back(pending_[i].spec.name());
    }
    return std::move(graph_);
  }

private:
  struct Pending {
    kiln::KernelSpec spec;
    std::vector<kiln::Argument> arguments;
    std::vector<std::string> settings; // of the schedule
  };
  kiln::Jit& jit_;
  const kiln::Device& device_;
  std::vector<Pending> pending_;
  CompiledGraph graph_;
};

} // namespace kiln_ggml
