// LayerGraph: the nodes of a layer.
#include "examples/ggml/layer/layer_graph.h"
#include <cmath>
#include <ggml-alloc.h>

namespace kiln_ggml {
namespace {

struct Nodes {
  ggml_context *leaves, *c; // of what the graph reads and keeps, and of what it computes
  const LayerSize& s;
  ggml_tensor *wq, *wk, *wv, *wo, *w_gate, *w_down, *w_up; // one behind the other, as in a model's file

  Nodes(ggml_context* leaves_context, ggml_context* context, const LayerSize& size)
      : leaves(leaves_context), c(context), s(size), wq(weight("wq", s.width, s.heads * s.head)),
        wk(weight("wk", s.width, s.kv_heads * s.head)), wv(weight("wv", s.width, s.kv_heads * s.head)),
        wo(weight("wo", s.heads * s.head, s.width)), w_gate(weight("w_gate", s.width, s.hidden)),
        w_down(weight("w_down", s.hidden, s.width)), w_up(weight("w_up", s.width, s.hidden)) {}

  ggml_tensor* named(const char* name, ggml_tensor* t) const { return ggml_set_name(t, name); }
  ggml_tensor* weight(const char* name, std::int64_t k, std::int64_t n) const {
    return named(name, ggml_new_tensor_2d(leaves, GGML_TYPE_F16, k, n));
  }
  ggml_tensor* norm(const char* name, ggml_tensor* x) const {
    return named(name, ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), ggml_new_tensor_1d(leaves, GGML_TYPE_F32, s.width)));
  }
  ggml_tensor* rope(const char* name, ggml_tensor* x, std::int64_t heads, ggml_tensor* position) const {
    ggml_tensor* const by_head = ggml_reshape_3d(c, x, s.head, heads, s.tokens);
    return named(name, ggml_rope_ext(c, by_head, position, nullptr, static_cast<int>(s.head), GGML_ROPE_TYPE_NORMAL, 4096, 10000.0f, 1.0f,
                                     0.0f, 1.0f, 32.0f, 1.0f));
  }

  // Attention over `context` positions of a cache that the token's own row is written to.
  ggml_tensor* attention(ggml_cgraph* graph, ggml_tensor* x) const {
    ggml_tensor* const position = named("position", ggml_new_tensor_1d(leaves, GGML_TYPE_I32, s.tokens));
    ggml_tensor* const slot = named("slot", ggml_new_tensor_1d(leaves, GGML_TYPE_I64, s.tokens));
    ggml_tensor* const mask = named("mask", ggml_new_tensor_2d(leaves, GGML_TYPE_F16, s.context, s.tokens));
    const std::int64_t kv = s.kv_heads * s.head;
    ggml_tensor* const q = rope("q_rope", named("q", ggml_mul_mat(c, wq, x)), s.heads, position);
    ggml_build_forward_expand(graph, q); // in llama.cpp's order
    ggml_tensor* const v = named("v", ggml_mul_mat(c, wv, x));
    ggml_build_forward_expand(graph, v);
    ggml_tensor* const k = rope("k_rope", named("k", ggml_mul_mat(c, wk, x)), s.kv_heads, position);
    ggml_tensor *const k_cache = weight("k_cache", kv, s.context), *const v_cache = weight("v_cache", kv, s.context);
    ggml_build_forward_expand(graph, named("k_write", ggml_set_rows(c, k_cache, ggml_reshape_2d(c, k, kv, s.tokens), slot)));
    ggml_build_forward_expand(graph, named("v_write", ggml_set_rows(c, v_cache, v, slot)));
    const auto by_head = [&](ggml_tensor* cache) {
      return ggml_permute(c, ggml_reshape_3d(c, cache, s.head, s.kv_heads, s.context), 0, 2, 1, 3);
    };
    ggml_tensor* const mixed = named("attention", ggml_flash_attn_ext(c, ggml_permute(c, q, 0, 2, 1, 3), by_head(k_cache), by_head(v_cache),
                                                                      mask, 1.0f / std::sqrt(static_cast<float>(s.head)), 0.0f, 0.0f));
    ggml_tensor* const merged = ggml_reshape_2d(c, mixed, s.heads * s.head, s.tokens);
    return named("attn_out", ggml_mul_mat(c, wo, merged));
  }

  ggml_tensor* feed_forward(ggml_tensor* x) const {
    ggml_tensor* const up = named("ffn_up", ggml_mul_mat(c, w_up, x));
    ggml_tensor* const gate = named("ffn_gate", ggml_mul_mat(c, w_gate, x));
    return named("ffn_down", ggml_mul_mat(c, w_down, named("ffn_swiglu", ggml_swiglu_split(c, gate, up))));
  }
};

} // namespace

LayerGraph::LayerGraph(const LayerSize& size, ggml_backend_buffer_type_t buffers) {
  const ggml_init_params params{.mem_size = std::size_t{1} << 22, .mem_buffer = nullptr, .no_alloc = true};
  leaves_ = ggml_init(params);
  nodes_ = ggml_init(params);
  graph_ = ggml_new_graph(nodes_);
  const Nodes n(leaves_, nodes_, size);
  ggml_tensor* const x = n.named("x", ggml_new_tensor_2d(leaves_, GGML_TYPE_F32, size.width, size.tokens));
  ggml_tensor* const h = n.named("ffn_inp", ggml_add(nodes_, n.attention(graph_, n.norm("attn_norm", x)), x));
  ggml_build_forward_expand(graph_, n.named("l_out", ggml_add(nodes_, n.feed_forward(n.norm("ffn_norm", h)), h)));
  if (buffers == nullptr) return;
  buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(leaves_, buffers);
  if (buffer_ != nullptr) ggml_backend_buffer_clear(buffer_, 0);
  allocator_ = ggml_gallocr_new(buffers);
  ggml_gallocr_alloc_graph(allocator_, graph_);
}

LayerGraph::~LayerGraph() {
  if (allocator_ != nullptr) ggml_gallocr_free(allocator_);
  if (buffer_ != nullptr) ggml_backend_buffer_free(buffer_);
  ggml_free(nodes_);
  ggml_free(leaves_);
}

ggml_tensor* LayerGraph::find(const char* name) const {
  ggml_tensor* const leaf = ggml_get_tensor(leaves_, name);
  return leaf != nullptr ? leaf : ggml_get_tensor(nodes_, name);
}

} // namespace kiln_ggml
