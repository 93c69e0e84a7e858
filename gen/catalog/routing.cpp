// Routing: the experts of each token, and the reductions and layouts beside it.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"
#include <limits>

namespace kiln {
namespace {

constexpr double epsilon_of_norm = 1e-6;

Expr matrix(const char* name, const CatalogOptions& options) { return input(name, options.dtype, {dynamic("rows"), options.cols}); }

} // namespace

// For diffusion transformers: the norm without weights, scaled and shifted by what a batch has one of a column.
KernelSpec layernorm_modulate(const CatalogOptions& options) {
  const Expr x = input("x", options.dtype, {dynamic("batch"), dynamic("rows"), options.cols});
  const auto of_batch = [&](const char* name) { return input(name, options.dtype, {dynamic("batch"), 1, options.cols}); };
  const Expr centred = x - row_mean(x);
  const Expr y = centred * rsqrt(row_mean(centred * centred) + epsilon_of_norm) * (of_batch("scale") + 1) + of_batch("shift");
  return KernelSpec("layernorm_modulate").output("y", options.dtype, y);
}

// Two parts of an attention, each a mean of values and the log of the sum that it was divided by. Parts without keys have minus infinity.
KernelSpec lse_merge(const CatalogOptions& options) {
  const auto part = [&](const char* name) { return input(name, options.dtype, {dynamic("rows"), options.cols}); };
  const auto log_sum = [](const char* name) { return input(name, f32, {dynamic("rows"), 1}); };
  const Expr a_lse = log_sum("a_lse"), b_lse = log_sum("b_lse");
  constexpr double largest = std::numeric_limits<float>::max();
  const Expr most = clamp(max(a_lse, b_lse), -largest, largest);
  const Expr of_a = exp(a_lse - most), of_b = exp(b_lse - most), sum = of_a + of_b;
  const Expr y = (part("a") * of_a + part("b") * of_b) * select(sum > 0, rcp(sum), 0);
  return KernelSpec("lse_merge").output("y", options.dtype, y).output("lse", f32, log(sum) + most);
}

// ---- routing: the experts of each token, and their weights

// By softmax: of the chosen logits, which is that of all logits renormalised. By sigmoid: with a bias that only the choice sees, the
// scores renormalised.
KernelSpec routed(const char* name, const Expr& logits, const Expr& bias, const CatalogOptions& options) {
  const Expr scores = options.sigmoid ? sigmoid(logits) : logits;
  const Expr top = row_top(options.sigmoid ? scores + bias : scores, options.top), chosen = pick(scores, top);
  const Expr e = options.sigmoid ? chosen : exp(chosen - row_max(chosen));
  KernelSpec spec(name);
  spec.output("weights", f32, e / row_sum(e)).output("experts", i32, top);
  if (!options.sorted) return spec;
  const std::int64_t experts = scores.shape().back().size();
  return spec.output("order", i32, expert_order(top, experts)).output("offsets", i32, expert_offsets(top, experts));
}

KernelSpec topk_softmax(const CatalogOptions& options) {
  return routed("topk_softmax", matrix("logits", options), input("bias", f32, {options.cols}), options);
}

} // namespace kiln
