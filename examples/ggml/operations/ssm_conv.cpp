// SSM_CONV: each channel's causal convolution of a few tokens, as a sum of products of the window's columns.
#include "examples/ggml/operations/operations.h"
#include <utility>

namespace kiln_ggml {
namespace {

constexpr std::int64_t max_window = 16; // products of an element

// Result [channels, tokens, sequences], of windows [tokens + width - 1, channels, sequences] and weights [width, channels].
TensorView tokens_from(const ggml_tensor& windows, std::int64_t first, const Extents& ne) {
  TensorView view = view_of(windows);
  view.data = static_cast<char*>(view.data) + static_cast<std::size_t>(first) * bytes_of(view.dtype);
  view.ne = ne;
  std::swap(view.stride[0], view.stride[1]);
  return view;
}
TensorView weights_at(const ggml_tensor& weights, std::int64_t token) { return tokens_from(weights, token, {weights.ne[1], 1, 1, 1}); }

} // namespace

bool supports_ssm_conv(const ggml_tensor& node) {
  const ggml_tensor &windows = *node.src[0], &weights = *node.src[1];
  return is_float(windows.type) && is_float(weights.type) && is_float(node.type) && weights.ne[0] <= max_window &&
         weights.ne[2] * weights.ne[3] == 1;
}

void lower_ssm_conv(GraphBuilder& graph, const ggml_tensor& node) {
  const TensorView to = view_of(node);
  KernelDraft draft(graph, Space::flat, to.ne);
  kiln::Expr sum = 0;
  for (std::int64_t t = 0; t < node.src[1]->ne[0]; ++t) {
    const kiln::Expr product = draft.read(tokens_from(*node.src[0], t, to.ne)) * draft.read(weights_at(*node.src[1], t));
    sum = t == 0 ? product : sum + product;
  }
  draft.write(to, sum);
  draft.launch("ssm_conv");
}

} // namespace kiln_ggml
