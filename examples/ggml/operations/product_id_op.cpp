// MUL_MAT_ID: rows times the matrices of their experts, by Kiln's grouped products, or as sums of rows for what has no such form.
#include "examples/ggml/operations/operations.h"
#include <algorithm>
#include <gen/spec/math.h>
#include <utility>

namespace kiln_ggml {
namespace {

using kiln::Dim;
using kiln::dynamic;
using kiln::Expr;

constexpr std::int64_t few_tokens = 16, many_tokens = 64; // bounds of a launch: a kernel each
constexpr std::int64_t max_top = 16;                      // experts of a token
constexpr std::int64_t exact = 1 << 24;                   // integers below are exact in f32

// y[tokens, top, n] = x[tokens, top or 1, k] by w[experts, n, k] of each pair's expert.
struct Pairs {
  std::int64_t k, n, experts, top, tokens;
  bool one_row; // of x a token, which all of its experts take
  explicit Pairs(const ggml_tensor& node)
      : k(node.src[0]->ne[0]), n(node.src[0]->ne[1]), experts(node.src[0]->ne[2]), top(node.src[2]->ne[0]), tokens(node.src[2]->ne[1]),
        one_row(node.src[1]->ne[1] == 1 && top != 1) {}
  std::int64_t rows_of_token() const { return one_row ? 1 : top; }
};

struct PairOperands {
  TensorView x, w, ids, y;
};

bool has_grouped_form(const Pairs& p, const PairOperands& t) {
  const bool types = t.x.dtype == kiln::f32 ? t.w.dtype != kiln::i32 : t.x.dtype == t.w.dtype;
  const auto whole = [&](const TensorView& v) { return p.k * static_cast<std::int64_t>(bytes_of(v.dtype)) % 16 == 0 && v.is_aligned(); };
  return types && whole(t.x) && whole(t.w) && p.top <= max_top && p.experts <= kiln::max_experts && p.k < exact && p.n < exact;
}

kiln::Argument tensor(const char* name, void* data, kiln::DType type, std::vector<std::int64_t> shape) {
  return {name, kiln::DeviceTensor{data, type, std::move(shape), 0}};
}

void* behind(const TensorView& v, std::int64_t elements) {
  return static_cast<std::byte*>(v.data) + elements * static_cast<std::int64_t>(bytes_of(v.dtype));
}

// Two launches for up to 64 tokens: their pairs in the order of their experts, and the products.
void launch_groups(GraphBuilder& graph, const Pairs& p, const PairOperands& t) {
  const Dim m = dynamic("m", 1, p.tokens <= few_tokens ? few_tokens : many_tokens);
  for (std::int64_t first = 0; first < p.tokens; first += many_tokens) {
    const std::int64_t tokens = std::min(many_tokens, p.tokens - first);
    void* const order = graph.scratch(static_cast<std::size_t>(tokens * p.top) * 4);
    void* const offsets = graph.scratch(static_cast<std::size_t>(p.experts + 1) * 4);
    const Expr experts = kiln::input("experts", kiln::i32, {dynamic("tokens"), p.top});
    graph.launch(kiln::KernelSpec("experts_sorted")
                     .output("order", kiln::i32, kiln::expert_order(experts, p.experts))
                     .output("offsets", kiln::i32, kiln::expert_offsets(experts, p.experts)),
                 {tensor("experts", behind(t.ids, first * p.top), kiln::i32, {tokens, p.top}),
                  tensor("order", order, kiln::i32, {tokens, p.top}), tensor("offsets", offsets, kiln::i32, {p.experts + 1})});
    const Expr x = kiln::input("x", t.x.dtype, p.one_row ? kiln::Shape{m, p.k} : kiln::Shape{m, p.top, p.k});
    const Expr product = kiln::matmul_nt(x, kiln::input("w", t.w.dtype, {p.experts, p.n, p.k}));
    const Expr sorted = kiln::input("order", kiln::i32, {m, p.top}), begins = kiln::input("offsets", kiln::i32, {p.experts + 1});
    void* const rows = behind(t.x, first * p.rows_of_token() * p.k);
    graph.launch(kiln::KernelSpec("experts_product").output("y", t.y.dtype, kiln::by_expert(product, sorted, begins)),
                 {tensor("x", rows, t.x.dtype, p.one_row ? std::vector{tokens, p.k} : std::vector{tokens, p.top, p.k}),
                  tensor("w", t.w.data, t.w.dtype, {p.experts, p.n, p.k}), tensor("order", order, kiln::i32, {tokens, p.top}),
                  tensor("offsets", offsets, kiln::i32, {p.experts + 1}),
                  tensor("y", behind(t.y, first * p.top * p.n), t.y.dtype, {tokens, p.top, p.n})});
  }
}

// Two launches: which row of all experts each result takes, and the sums.
void launch_sums(GraphBuilder& graph, const Pairs& p, const PairOperands& t) {
  const std::int64_t pairs = p.tokens * p.top;
  void* const rows = graph.scratch(static_cast<std::size_t>(pairs * p.n) * 4);
  const Expr expert = kiln::cast(kiln::f32, kiln::input("experts", kiln::i32, {dynamic("pairs"), 1}));
  graph.launch(kiln::KernelSpec("experts_rows").output("y", kiln::i32, expert * static_cast<double>(p.n) + kiln::iota({p.n})),
               {tensor("experts", t.ids.data, kiln::i32, {pairs, 1}), tensor("y", rows, kiln::i32, {pairs, p.n})});
  const Dim tokens = dynamic("tokens"), n = dynamic("n");
  const Expr x = kiln::input("x", t.x.dtype, {tokens, p.rows_of_token(), 1, p.k});
  const Expr table = kiln::input("w", t.w.dtype, {dynamic("rows", 1), p.k});
  const Expr index = kiln::input("index", kiln::i32, {tokens, p.top, n, 1});
  graph.launch(kiln::KernelSpec("experts_sums").output("y", t.y.dtype, kiln::row_sum(x * kiln::gather(table, index))),
               {tensor("x", t.x.data, t.x.dtype, {p.tokens, p.rows_of_token(), 1, p.k}),
                tensor("w", t.w.data, t.w.dtype, {p.experts * p.n, p.k}), tensor("index", rows, kiln::i32, {p.tokens, p.top, p.n, 1}),
                tensor("y", t.y.data, t.y.dtype, {p.tokens, p.top, p.n, 1})});
}

} // namespace

bool supports_product_by_id(const ggml_tensor& node) {
  const ggml_tensor &w = *node.src[0], &x = *node.src[1], &ids = *node.src[2];
  if (!is_float(x.type) || node.type != GGML_TYPE_F32 || !ggml_is_contiguous(&node) || ids.type != GGML_TYPE_I32) return false;
  if (!is_float(w.type) && (!can_decode(w.type) || !ggml_is_contiguous(&w))) return false;
  return (x.ne[1] == 1 || x.ne[1] == ids.ne[0]) && x.ne[3] == 1 && w.ne[1] * w.ne[2] < exact;
}

void lower_product_by_id(GraphBuilder& graph, const ggml_tensor& node) {
  const Pairs pairs(node);
  const PairOperands operands = {.x = dense(graph, view_of(*node.src[1])),
                                 .w = dense(graph, decoded(graph, *node.src[0])),
                                 .ids = dense_indices(graph, *node.src[2]),
                                 .y = view_of(node)};
  if (has_grouped_form(pairs, operands)) launch_groups(graph, pairs, operands);
  else launch_sums(graph, pairs, operands);
}

} // namespace kiln_ggml
