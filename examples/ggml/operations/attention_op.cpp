// FLASH_ATTN_EXT: Kiln's attention over a cache as llama.cpp keeps it, [keys, heads, d], up to 64 rows of q a KV head and launch.
#include "examples/ggml/operations/operations.h"
#include "examples/ggml/operations/pointwise_ops.h"
#include <algorithm>
#include <array>
#include <gen/spec/attention.h>
#include <gen/spec/math.h>
#include <utility>

namespace kiln_ggml {
namespace {

using kiln::Expr;

constexpr std::int64_t most_rows = 64; // of q that share a head of the cache

struct Sizes {
  std::int64_t d, tokens, heads, batch, keys, kv_heads;
  explicit Sizes(const ggml_tensor& node)
      : d(node.src[0]->ne[0]), tokens(node.src[0]->ne[1]), heads(node.src[0]->ne[2]), batch(node.src[0]->ne[3]), keys(node.src[1]->ne[1]),
        kv_heads(node.src[1]->ne[2]) {}
  std::int64_t tokens_of_launch() const { return most_rows / (heads / kv_heads); }
};

// Keys one after another, each with all of its heads.
bool lies_by_keys(const ggml_tensor& cache) {
  const std::size_t head = static_cast<std::size_t>(cache.ne[0]) * ggml_type_size(cache.type);
  return cache.nb[0] == ggml_type_size(cache.type) && (cache.ne[2] == 1 || cache.nb[2] == head) &&
         cache.nb[1] == head * static_cast<std::size_t>(cache.ne[2]) && cache.nb[3] % 16 == 0 && cache.view_offs % 16 == 0;
}

bool mask_fits(const ggml_tensor& mask, const Sizes& s) {
  return mask.type == GGML_TYPE_F16 && ggml_is_contiguous(&mask) && mask.ne[0] == s.keys && mask.ne[1] >= s.tokens && mask.ne[2] == 1 &&
         (mask.ne[3] == 1 || mask.ne[3] == s.batch) && s.keys % 8 == 0;
}

std::byte* at(const ggml_tensor& tensor, std::int64_t d1, std::int64_t d3) {
  return static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(d1) * tensor.nb[1] + static_cast<std::size_t>(d3) * tensor.nb[3];
}

// A launch for `tokens` tokens of one sequence from `first` on.
struct AttentionLaunch {
  GraphBuilder& graph;
  const ggml_tensor& node;
  const Sizes& s;
  void* q; // [tokens, heads, d] of all tokens of the sequence, of the cache's type
  void* lengths;
  std::int64_t batch, first, tokens;
  std::vector<kiln::Argument> arguments = {};

  void launch() {
    const kiln::DType type = *dtype_of(node.src[1]->type);
    const kiln::Dim keys = kiln::dynamic("keys");
    const Expr products =
        kiln::attention_scores(kiln::input("q", type, {1, tokens, s.heads, s.d}), kiln::input("k", type, {1, keys, s.kv_heads, s.d}));
    auto* const rows = static_cast<std::byte*>(q) + first * s.heads * s.d * 2;
    add("q", rows, type, {1, tokens, s.heads, s.d});
    add("k", at(*node.src[1], 0, batch), type, {1, s.keys, s.kv_heads, s.d});
    add("v", at(*node.src[2], 0, batch), type, {1, s.keys, s.kv_heads, s.d});
    add("lengths", lengths, kiln::i32, {1, 1, 1, 1});
    const Expr length = kiln::input("lengths", kiln::i32, {1, 1, 1, 1}), scores = scores_of(products, keys);
    Expr value = kiln::attention(scores, kiln::input("v", type, {1, keys, s.kv_heads, s.d}), length);
    if (node.src[4] != nullptr) { // a score more for each head, of no key
      add("sinks", node.src[4]->data, kiln::f32, {s.heads, 1});
      value = value * kiln::sigmoid(kiln::log_sum_exp(scores, length) - kiln::input("sinks", kiln::f32, {s.heads, 1}));
    }
    auto* const to = static_cast<std::byte*>(node.data) + (batch * s.tokens + first) * s.heads * s.d * 4;
    add("y", to, kiln::f32, {1, tokens, s.heads, s.d});
    graph.launch(kiln::KernelSpec("flash").output("y", kiln::f32, value), std::move(arguments));
  }

  void add(const char* name, void* data, kiln::DType type, std::vector<std::int64_t> shape) {
    arguments.emplace_back(name, kiln::DeviceTensor{data, type, std::move(shape), 0});
  }

  Expr scores_of(const Expr& products, const kiln::Dim& keys) {
    const float scale = float_parameter(node, 0), max_bias = float_parameter(node, 1), cap = float_parameter(node, 2);
    Expr scores = products * kiln::scalar("scale");
    arguments.emplace_back("scale", cap == 0 ? scale : scale / cap);
    if (cap != 0) {
      scores = kiln::tanh(scores) * kiln::scalar("cap");
      arguments.emplace_back("cap", cap);
    }
    if (node.src[3] == nullptr) return scores;
    const ggml_tensor& mask = *node.src[3];
    add("mask", at(mask, first, mask.ne[3] == 1 ? 0 : batch), kiln::f16, {tokens, 1, s.keys});
    Expr added = kiln::input("mask", kiln::f16, {tokens, 1, keys});
    if (max_bias > 0) {
      add("slopes", graph.constant(alibi_slopes(s.heads, max_bias)), kiln::f32, {s.heads, 1});
      added = added * kiln::input("slopes", kiln::f32, {s.heads, 1});
    }
    return scores + added;
  }
};

} // namespace

bool supports_attention(const ggml_tensor& node) {
  const ggml_tensor &q = *node.src[0], &k = *node.src[1], &v = *node.src[2];
  const Sizes s(node);
  const bool known = std::ranges::any_of(std::array{64, 80, 96, 128, 192, 256}, [&](int d) { return d == s.d; });
  if (!known || q.type != GGML_TYPE_F32 || node.type != GGML_TYPE_F32 || (k.type != GGML_TYPE_F16 && k.type != GGML_TYPE_BF16))
    return false;
  if (v.type != k.type || v.ne[0] != s.d || !lies_by_keys(k) || !lies_by_keys(v) || k.ne[3] != s.batch || v.ne[3] != s.batch) return false;
  if (s.heads % s.kv_heads != 0 || s.heads / s.kv_heads > most_rows) return false;
  if (node.src[4] != nullptr && (node.src[4]->type != GGML_TYPE_F32 || !ggml_is_contiguous(node.src[4]))) return false;
  return node.src[3] == nullptr || mask_fits(*node.src[3], s);
}

void lower_attention(GraphBuilder& graph, const ggml_tensor& node, void* queries) {
  const Sizes s(node);
  const std::int64_t elements = s.tokens * s.heads * s.d;
  if (queries == nullptr) {
    TensorView q = view_of(*node.src[0]);
    std::swap(q.ne[1], q.ne[2]);
    std::swap(q.stride[1], q.stride[2]);
    queries = graph.scratch(static_cast<std::size_t>(elements * s.batch) * 2);
    copy(graph, q, dense_view(queries, *dtype_of(node.src[1]->type), q.ne));
  }
  void* const lengths = graph.constant(std::vector<std::int32_t>{static_cast<std::int32_t>(s.keys)});
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t first = 0; first < s.tokens; first += s.tokens_of_launch())
      AttentionLaunch{.graph = graph,
                      .node = node,
                      .s = s,
                      .q = static_cast<std::byte*>(queries) + b * elements * 2,
                      .lengths = lengths,
                      .batch = b,
                      .first = first,
                      .tokens = std::min(s.tokens_of_launch(), s.tokens - first)}
          .launch();
}

} // namespace kiln_ggml
