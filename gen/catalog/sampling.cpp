// Sampling: the next token from the logits over a vocabulary.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"
#include <limits>

namespace kiln {
namespace {

constexpr double min_temperature = 1e-5; // below it the largest logit wins in any case: no division by 0

Expr number_of_row(const char* name, DType type, const CatalogOptions& options) { return input(name, type, {dynamic_rows(options), 1}); }
Expr some_temperature(const CatalogOptions& options) { return max(number_of_row("temperature", f32, options), min_temperature); }

// Gumbel noise of a token: the same for a seed, an offset and a token, however the row is worked on.
Expr gumbel_of_token(const Expr& token, const CatalogOptions& options) {
  return gumbel(random_bits(cast(i32, token), number_of_row("offset", i32, options), number_of_row("seed", i32, options)));
}

} // namespace

KernelSpec softmax(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr e = exp(x - row_max(x));
  return KernelSpec("softmax").output("y", options.dtype, e / row_sum(e));
}

KernelSpec softmax_temperature(const CatalogOptions& options) {
  const Expr x = activation("x", options) / number_of_row("temperature", f32, options);
  const Expr e = exp(x - row_max(x));
  return KernelSpec("softmax_temperature").output("y", f32, e / row_sum(e));
}

KernelSpec argmax_rows(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  return KernelSpec("argmax_rows").output("column", i32, row_argmax(x)).output("value", f32, row_max(x));
}

// The largest of logits with Gumbel noise is a token by their softmax.
KernelSpec sample_gumbel(const CatalogOptions& options) {
  const Expr z = activation("logits", options) * div_exact(1, some_temperature(options));
  const Expr token = options.cols > 1 ? iota({options.cols}) : Expr(0);
  return KernelSpec("sample_gumbel").output("token", i32, row_argmax(z + gumbel_of_token(token, options)));
}

// The token is one of the k largest logits, k to 256: those whose share is at least min_p of the largest one's, and of these the first
// whose shares reach p of the k. A token of the rest by its softmax.
KernelSpec sample_top_k_top_p(const CatalogOptions& options) {
  const Expr logits = activation("logits", options);
  const std::int64_t ranks = std::min(max_selected_ranks, options.cols);
  const Expr top = row_top(logits, ranks);
  const Expr rank = ranks < options.cols ? iota({ranks}) : round(row_cumsum(cast(f32, top >= 0))) - 1; // an iota of all would be of columns
  const Expr z = div_exact(pick(logits, top), some_temperature(options));
  const Expr share = select(rank < number_of_row("k", i32, options), exp(z - row_max(z)), 0);
  const Expr before = row_cumsum(share) - share; // those of the ranks above
  const Expr stays = logical_and(before < number_of_row("p", f32, options) * row_sum(share), share >= number_of_row("min_p", f32, options));
  const Expr noisy = z + select(logical_or(rank < 1, logical_and(stays, share > 0)), gumbel_of_token(top, options),
                                -std::numeric_limits<double>::infinity());
  return KernelSpec("sample_top_k_top_p").output("token", i32, row_sum(select(eq(rank, row_argmax(noisy)), top, 0)));
}

} // namespace kiln
