// FLASH_ATTN_EXT: Kiln's attention over a cache as llama.cpp keeps it, [keys, heads, d], up to 64 rows of q a KV head and launch. Caches
// that lie otherwise, are of another type or of another size of a head are copied to such a one before.
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

constexpr std::int64_t max_rows = 64; // of q that share a head of the cache
constexpr std::array<std::int64_t, 6> head_sizes = {64, 80, 96, 128, 192, 256};
constexpr std::int64_t key_step = 8; // rows of a mask are read 16 bytes at a time

// The smallest size of a head that has room for both; 0: there is none.
std::int64_t head_size(std::int64_t of_k, std::int64_t of_v) {
  const auto size = std::ranges::find_if(head_sizes, [&](std::int64_t d) { return d >= std::max(of_k, of_v); });
  return size == head_sizes.end() ? 0 : *size;
}

struct AttentionSizes {
  std::int64_t d, of_k, of_v, tokens, heads, batch, keys, kv_heads;
  explicit AttentionSizes(const ggml_tensor& node)
      : d(head_size(node.src[0]->ne[0], node.src[2]->ne[0])), of_k(node.src[0]->ne[0]), of_v(node.src[2]->ne[0]),
        tokens(node.src[0]->ne[1]), heads(node.src[0]->ne[2]), batch(node.src[0]->ne[3]), keys(node.src[1]->ne[1]),
        kv_heads(node.src[1]->ne[2]) {}
  std::int64_t tokens_of_launch() const { return max_rows / (heads / kv_heads); }
};

// Keys one after another, each with all of its heads.
bool lies_by_keys(const ggml_tensor& cache) {
  const std::size_t head = static_cast<std::size_t>(cache.ne[0]) * ggml_type_size(cache.type);
  return cache.nb[0] == ggml_type_size(cache.type) && (cache.ne[2] == 1 || cache.nb[2] == head) &&
         cache.nb[1] == head * static_cast<std::size_t>(cache.ne[2]) && cache.nb[3] % 16 == 0 && cache.view_offs % 16 == 0;
}

bool mask_lies_well(const ggml_tensor& mask, const AttentionSizes& s) { return ggml_is_contiguous(&mask) && s.keys % key_step == 0; }

bool is_half(ggml_type type) { return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16; }

// Whether the kernel reads cache and mask where they are.
bool reads_in_place(const ggml_tensor& node, const AttentionSizes& s) {
  const ggml_tensor &k = *node.src[1], &v = *node.src[2];
  return is_half(k.type) && v.type == k.type && s.of_k == s.d && s.of_v == s.d && lies_by_keys(k) && lies_by_keys(v) &&
         (node.src[3] == nullptr || mask_lies_well(*node.src[3], s));
}

kiln::DType type_of_cache(const ggml_tensor& node) {
  return node.src[1]->type == GGML_TYPE_BF16 && node.src[2]->type == GGML_TYPE_BF16 ? kiln::bf16 : kiln::f16;
}

// Tensors of all sequences as the kernel reads them: the bytes from one sequence to the next.
struct Sequences {
  std::byte* data = nullptr;
  std::int64_t step = 0;
  std::byte* at(std::int64_t batch) const { return data + batch * step; }
};

struct AttentionOperands {
  kiln::DType type;
  std::int64_t keys;    // that there is room for
  Sequences k, v, mask; // [keys, kv_heads, d], [keys, kv_heads, d], [tokens, keys]
};

// `from` with zeros behind the ends of its dimensions, without gaps.
Sequences padded_copy(GraphBuilder& graph, const TensorView& from, kiln::DType type, const Extents& ne) {
  const auto bytes = static_cast<std::int64_t>(bytes_of(type));
  const TensorView to = dense_view(graph.scratch(static_cast<std::size_t>(ne[0] * ne[1] * ne[2] * ne[3] * bytes)), type, ne);
  const Sequences part = {static_cast<std::byte*>(to.data), ne[0] * ne[1] * ne[2] * bytes};
  KernelDraft draft(graph, from.ne == ne && from.has_dense_rows() ? Space::rows : Space::flat, ne);
  if (from.ne == ne) {
    draft.write(to, draft.read(from));
  } else {
    draft.write(to, draft.read(from, map_of(ne, [&](std::int64_t i0, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
                                 const bool beyond = i0 >= from.ne[0] || i1 >= from.ne[1] || i2 >= from.ne[2] || i3 >= from.ne[3];
                                 return beyond ? -1 : i0 * from.stride[0] + i1 * from.stride[1] + i2 * from.stride[2] + i3 * from.stride[3];
                               })));
  }
  draft.launch("padded_copy");
  return part;
}

// ggml's [d, keys, heads, batch] in the order of memory that the kernel wants.
TensorView heads_within_keys(TensorView view) {
  std::swap(view.ne[1], view.ne[2]);
  std::swap(view.stride[1], view.stride[2]);
  return view;
}

AttentionOperands operands_of(GraphBuilder& graph, const ggml_tensor& node, const AttentionSizes& s) {
  const auto in_place = [](const ggml_tensor* t) {
    return t == nullptr ? Sequences{}
                        : Sequences{static_cast<std::byte*>(t->data), t->ne[3] == 1 ? 0 : static_cast<std::int64_t>(t->nb[3])};
  };
  const kiln::DType type = type_of_cache(node);
  if (reads_in_place(node, s))
    return {.type = type, .keys = s.keys, .k = in_place(node.src[1]), .v = in_place(node.src[2]), .mask = in_place(node.src[3])};
  const std::int64_t keys = (s.keys + key_step - 1) / key_step * key_step;
  const Extents ne = {s.d, s.kv_heads, keys, s.batch};
  AttentionOperands result = {.type = type, .keys = keys, .k = {}, .v = {}, .mask = {}};
  result.k = padded_copy(graph, heads_within_keys(decoded(graph, *node.src[1])), type, ne);
  result.v = padded_copy(graph, heads_within_keys(decoded(graph, *node.src[2])), type, ne);
  if (node.src[3] == nullptr) return result;
  TensorView mask = view_of(*node.src[3]);
  mask.ne[1] = s.tokens; // there may be more rows
  result.mask = padded_copy(graph, mask, kiln::f16, {keys, s.tokens, 1, mask.ne[3]});
  if (mask.ne[3] == 1) result.mask.step = 0;
  return result;
}

// A launch for `tokens` tokens of one sequence from `first` on.
struct AttentionLaunch {
  GraphBuilder& graph;
  const ggml_tensor& node;
  const AttentionSizes& s;
  const AttentionOperands& operands;
  void* q; // [tokens, heads, d] of all tokens of the sequence, of the cache's type
  void* y; // the same of the result, f32
  void* lengths;
  std::int64_t batch, first, tokens;
  std::vector<kiln::Argument> arguments = {};

  void launch() {
    const kiln::DType type = operands.type;
    const kiln::Dim keys = kiln::dynamic("keys");
    const Expr products =
        kiln::attention_scores(kiln::input("q", type, {1, tokens, s.heads, s.d}), kiln::input("k", type, {1, keys, s.kv_heads, s.d}));
    add("q", static_cast<std::byte*>(q) + first * s.heads * s.d * 2, type, {1, tokens, s.heads, s.d});
    add("k", operands.k.at(batch), type, {1, operands.keys, s.kv_heads, s.d});
    add("v", operands.v.at(batch), type, {1, operands.keys, s.kv_heads, s.d});
    add("lengths", lengths, kiln::i32, {1, 1, 1, 1});
    const Expr length = kiln::input("lengths", kiln::i32, {1, 1, 1, 1}), scores = scores_of(products, keys);
    Expr value = kiln::attention(scores, kiln::input("v", type, {1, keys, s.kv_heads, s.d}), length);
    if (node.src[4] != nullptr) { // a score more for each head, of no key
      add("sinks", node.src[4]->data, kiln::f32, {s.heads, 1});
      value = value * kiln::sigmoid(kiln::log_sum_exp(scores, length) - kiln::input("sinks", kiln::f32, {s.heads, 1}));
    }
    add("y", static_cast<std::byte*>(y) + first * s.heads * s.d * 4, kiln::f32, {1, tokens, s.heads, s.d});
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
    add("mask", operands.mask.at(batch) + first * operands.keys * 2, kiln::f16, {tokens, 1, operands.keys});
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
  const AttentionSizes s(node);
  const auto readable = [](const ggml_tensor& cache) { return is_float(cache.type) || can_decode_view(cache); };
  if (s.d == 0 || q.type != GGML_TYPE_F32 || node.type != GGML_TYPE_F32 || !ggml_is_contiguous(&node) || !readable(k) || !readable(v))
    return false;
  if (k.ne[0] != s.of_k || k.ne[3] != s.batch || v.ne[3] != s.batch || v.ne[1] != s.keys || v.ne[2] != s.kv_heads) return false;
  if (s.heads % s.kv_heads != 0 || s.heads / s.kv_heads > max_rows) return false;
  if (node.src[4] != nullptr && (node.src[4]->type != GGML_TYPE_F32 || !ggml_is_contiguous(node.src[4]))) return false;
  const ggml_tensor* const mask = node.src[3];
  return mask == nullptr || (mask->type == GGML_TYPE_F16 && mask->ne[0] == s.keys && mask->ne[1] >= s.tokens && mask->ne[2] == 1 &&
                             (mask->ne[3] == 1 || mask->ne[3] == s.batch));
}

std::optional<kiln::DType> type_of_queries(const ggml_tensor& node) {
  return AttentionSizes(node).d == node.src[0]->ne[0] ? std::optional(type_of_cache(node)) : std::nullopt;
}

void lower_attention(GraphBuilder& graph, const ggml_tensor& node, void* queries) {
  const AttentionSizes s(node);
  const AttentionOperands operands = operands_of(graph, node, s);
  const std::int64_t elements = s.tokens * s.heads * s.d; // of a sequence
  if (queries == nullptr)
    queries = padded_copy(graph, heads_within_keys(view_of(*node.src[0])), operands.type, {s.d, s.heads, s.tokens, s.batch}).data;
  void* const result = s.of_v == s.d ? node.data : graph.scratch(static_cast<std::size_t>(elements * s.batch) * 4);
  void* const lengths = graph.constant(std::vector<std::int32_t>{static_cast<std::int32_t>(s.keys)});
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t first = 0; first < s.tokens; first += s.tokens_of_launch())
      AttentionLaunch{.graph = graph,
                      .node = node,
                      .s = s,
                      .operands = operands,
                      .q = static_cast<std::byte*>(queries) + b * elements * 2,
                      .y = static_cast<std::byte*>(result) + b * elements * 4,
                      .lengths = lengths,
                      .batch = b,
                      .first = first,
                      .tokens = std::min(s.tokens_of_launch(), s.tokens - first)}
          .launch();
  if (result == node.data) return;
  TensorView wide = dense_view(result, kiln::f32, {s.d, s.heads, s.tokens, s.batch});
  wide.ne[0] = s.of_v;
  copy(graph, wide, dense_view(node.data, kiln::f32, wide.ne));
}

} // namespace kiln_ggml
