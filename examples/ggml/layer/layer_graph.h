// LayerGraph: one layer of a Llama-class model as llama.cpp builds and allocates it for a token, or a few: nodes share memory, in a
// buffer of any of ggml's backends.
#pragma once
#include <cstdint>
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

namespace kiln_ggml {

struct LayerSize {
  std::int64_t width = 256, heads = 4, kv_heads = 2, head = 64, hidden = 512, context = 256, tokens = 1;
};

class LayerGraph {
public:
  LayerGraph(const LayerSize& size, ggml_backend_buffer_type_t buffers); // buffers: null for a graph that is only looked at
  ~LayerGraph();
  LayerGraph(const LayerGraph&) = delete;
  LayerGraph& operator=(const LayerGraph&) = delete;
  ggml_cgraph* graph() const { return graph_; }
  ggml_context* leaves() const { return leaves_; } // what the graph reads: weights, caches, activations
  ggml_tensor* find(const char* name) const;       // null: no such tensor

private:
  ggml_context *leaves_ = nullptr, *nodes_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
  ggml_backend_buffer_t buffer_ = nullptr; // of the leaves
  ggml_gallocr_t allocator_ = nullptr;     // of the nodes, as ggml's scheduler has one
};

} // namespace kiln_ggml
