// Proves what single nodes become: experts' products, products of blocks, attention over caches, writes of blocks.
#include "examples/ggml/buffer.h"
#include "examples/ggml/engine.h"
#include <doctest/doctest.h>
#include <ggml-alloc.h>

namespace kiln_ggml {
namespace {

// A graph of one node in the memory of an emulated device; nothing is compiled.
class OneNode {
public:
  OneNode() : type_{.iface = buffer_type_interface(), .device = nullptr, .context = &engine_} {}
  OneNode(const OneNode&) = delete;
  ~OneNode() {
    if (buffer_ != nullptr) ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }
  ggml_context* context() const { return context_; }
  ggml_tensor* tensor(ggml_type type, std::int64_t a, std::int64_t b, std::int64_t c = 1, std::int64_t d = 1) const {
    return ggml_new_tensor_4d(context_, type, a, b, c, d);
  }

  std::size_t launches(ggml_tensor* node) {
    ggml_cgraph* const graph = ggml_new_graph(context_);
    ggml_build_forward_expand(graph, node);
    buffer_ = ggml_backend_alloc_ctx_tensors_from_buft(context_, &type_);
    REQUIRE(buffer_ != nullptr);
    REQUIRE(supports(*node));
    kiln::Jit jit(engine_.device());
    GraphBuilder builder(jit, engine_.device());
    lower_graph(builder, partition({ggml_graph_nodes(graph), ggml_graph_nodes(graph) + ggml_graph_n_nodes(graph)}, use_counts(*graph)));
    return builder.launches();
  }

private:
  Engine engine_{kiln::Device::emulated("gfx942")};
  ggml_backend_buffer_type type_;
  ggml_context* context_ = ggml_init({.mem_size = std::size_t{1} << 20, .mem_buffer = nullptr, .no_alloc = true});
  ggml_backend_buffer_t buffer_ = nullptr;
};

std::size_t launches_by_experts(std::int64_t k, std::int64_t tokens, bool view) {
  OneNode g;
  ggml_tensor* ids = g.tensor(GGML_TYPE_I32, view ? 8 : 2, tokens);
  if (view) ids = ggml_view_2d(g.context(), ids, 2, tokens, ids->nb[1], 0);
  return g.launches(ggml_mul_mat_id(g.context(), g.tensor(GGML_TYPE_F16, k, 32, 8), g.tensor(GGML_TYPE_F32, k, 2, tokens), ids));
}

// Queries of two tokens over 64 keys of 4 heads, whose cache lies as [keys, heads, d] or [heads, keys, d].
std::size_t launches_of_attention(ggml_type type, std::int64_t d, bool by_keys) {
  OneNode g;
  const auto cache = [&] {
    if (!by_keys) return g.tensor(type, d, 64, 4);
    return ggml_permute(g.context(), g.tensor(type, d, 4, 64), 0, 2, 1, 3);
  };
  ggml_tensor *const k = cache(), *const v = cache();
  return g.launches(ggml_flash_attn_ext(g.context(), g.tensor(GGML_TYPE_F32, d, 2, 4), k, v, nullptr, 0.1f, 0.0f, 0.0f));
}

bool by_matrix(std::int64_t rows) {
  const OneNode g;
  return multiplies_by_matrix(*ggml_mul_mat(g.context(), g.tensor(GGML_TYPE_Q8_0, 256, 64), g.tensor(GGML_TYPE_F32, 256, rows)));
}

} // namespace

TEST_CASE("products by experts: pairs sorted and a grouped product for 64 tokens") {
  CHECK(launches_by_experts(256, 64, false) == 2);
  CHECK(launches_by_experts(256, 100, false) == 4);
  CHECK(launches_by_experts(256, 64, true) == 3);   // ids with gaps are copied
  CHECK(launches_by_experts(255, 100, false) == 2); // no matrix form: which rows, and the sums of all tokens
}

TEST_CASE("blocks are decoded in the kernel that multiplies few rows, before that of many") {
  CHECK_FALSE(by_matrix(8));
  CHECK(by_matrix(9));
}

TEST_CASE("attention reads a cache in place, or one that was copied") {
  CHECK(launches_of_attention(GGML_TYPE_F16, 64, true) == 2);  // queries rounded, attention
  CHECK(launches_of_attention(GGML_TYPE_F16, 64, false) == 4); // keys and values as well
  CHECK(launches_of_attention(GGML_TYPE_F16, 72, true) == 5);  // wider heads, and the result made narrow
  CHECK(launches_of_attention(GGML_TYPE_Q8_0, 64, true) == 6); // decoded and copied
  OneNode g;
  ggml_tensor* const wide = g.tensor(GGML_TYPE_F16, 512, 64, 4);
  CHECK_FALSE(supports(*ggml_flash_attn_ext(g.context(), g.tensor(GGML_TYPE_F32, 512, 2, 4), wide, wide, nullptr, 0.1f, 0.0f, 0.0f)));
}

TEST_CASE("rows are written as blocks of the formats that have an encoder") {
  for (const auto& [type, launches] : {std::pair(GGML_TYPE_Q8_0, 3u), std::pair(GGML_TYPE_Q4_0, 4u), std::pair(GGML_TYPE_Q4_1, 4u)}) {
    CAPTURE(ggml_type_name(type));
    OneNode g;
    CHECK(g.launches(ggml_set_rows(g.context(), g.tensor(type, 64, 16), g.tensor(GGML_TYPE_F32, 64, 3), g.tensor(GGML_TYPE_I64, 3, 1))) ==
          launches);
  }
  OneNode g;
  CHECK_FALSE(supports(
      *ggml_set_rows(g.context(), g.tensor(GGML_TYPE_Q4_K, 256, 16), g.tensor(GGML_TYPE_F32, 256, 3), g.tensor(GGML_TYPE_I64, 3, 1))));
}

} // namespace kiln_ggml
