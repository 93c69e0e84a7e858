// GATED_DELTA_NET: a few tokens of the gated delta rule, one after the other. A row of the state, which its keys lie along, is a row of the
// kernel.
#include "examples/ggml/operations/operations.h"
#include <algorithm>
#include <cmath>
#include <gen/spec/math.h>

namespace kiln_ggml {
namespace {

constexpr std::int64_t max_tokens = 8; // unrolled

// Result: [d, heads, tokens, sequences], then states [d, d, heads, sequences] behind the last token, behind the one before it, and so on.
struct Sizes {
  std::int64_t d, heads, tokens, sequences, states;
};

Sizes sizes_of(const ggml_tensor& node) {
  const ggml_tensor& v = *node.src[2];
  Sizes s{.d = v.ne[0], .heads = v.ne[1], .tokens = v.ne[2], .sequences = v.ne[3], .states = 0};
  s.states = (ggml_nelements(&node) - ggml_nelements(&v)) / (s.d * s.d * s.heads * s.sequences);
  return s;
}

TensorView token_of(const ggml_tensor& tensor, std::int64_t t) {
  TensorView view = view_of(tensor);
  view.data = static_cast<float*>(view.data) + t * view.stride[2];
  return view;
}
// A token of a tensor [1 or d, heads, tokens, sequences], the same for all rows of a head's state.
TensorView along_keys(const ggml_tensor& tensor, std::int64_t t) {
  TensorView view = token_of(tensor, t);
  view.ne = {view.ne[0], 1, view.ne[1], view.ne[3]};
  view.stride = {view.stride[0], view.stride[1], view.stride[1], view.stride[3]};
  return view;
}
// A number for each row.
TensorView of_rows(const ggml_tensor& v, std::int64_t t) {
  TensorView view = token_of(v, t);
  view.ne = {1, view.ne[0], view.ne[1], view.ne[3]};
  view.stride = {1, view.stride[0], view.stride[1], view.stride[3]};
  return view;
}

} // namespace

bool supports_gated_delta(const ggml_tensor& node) {
  const Sizes s = sizes_of(node);
  const auto is_f32 = [](const ggml_tensor* source) { return source == nullptr || source->type == GGML_TYPE_F32; };
  const ggml_tensor &q = *node.src[0], &k = *node.src[1];
  return std::ranges::all_of(node.src, is_f32) && node.type == GGML_TYPE_F32 && s.tokens <= max_tokens && s.d % 4 == 0 &&
         q.ne[3] == s.sequences && k.ne[3] == s.sequences && s.heads % q.ne[1] == 0 && s.heads % k.ne[1] == 0 &&
         ggml_is_contiguous(node.src[5]) && ggml_is_contiguous(&node);
}

void lower_gated_delta(GraphBuilder& graph, const ggml_tensor& node) {
  const Sizes s = sizes_of(node);
  const Extents rows = {s.d, s.d, s.heads, s.sequences};
  auto* const out = static_cast<float*>(node.data);
  KernelDraft draft(graph, Space::rows, rows);
  kiln::Expr state = draft.read(dense_view(node.src[5]->data, kiln::f32, rows));
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    const kiln::Expr q = draft.read(along_keys(*node.src[0], t)), k = draft.read(along_keys(*node.src[1], t));
    const kiln::Expr old = state * kiln::exp(draft.read(along_keys(*node.src[3], t)));
    const kiln::Expr error = draft.read(of_rows(*node.src[2], t)) - kiln::row_sum(old * k);
    state = old + error * draft.read(along_keys(*node.src[4], t)) * k;
    TensorView result = dense_view(out + t * s.heads * s.d, kiln::f32, {1, s.d, s.heads, s.sequences});
    result.stride[3] = s.tokens * s.heads * s.d;
    draft.write(result, kiln::row_sum(state * q) * (1 / std::sqrt(static_cast<double>(s.d))));
    if (const std::int64_t back = s.tokens - 1 - t; back < s.states)
      draft.write(dense_view(out + ggml_nelements(node.src[2]) + back * s.d * s.d * s.heads * s.sequences, kiln::f32, rows), state);
  }
  draft.launch("gated_delta");
}

} // namespace kiln_ggml
