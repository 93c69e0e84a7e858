// Attention: softmax(scores) x values over the keys of a cache, with the score as an expression. docs/attention.md explains it.
#pragma once
#include "gen/spec/expr.h"
#include <optional>

namespace kiln {

// Products of queries and keys, in f32: [sequences, heads, keys], or [sequences, tokens, heads, keys] with several queries a sequence.
// q is [sequences, heads, d] or [sequences, tokens, heads, d], of f16 or bf16; k [sequences, keys, kv_heads, d], of q's type, an fp8 or
// i8. heads / kv_heads heads of q in sequence read one head of k. k of 8 bits may come with a scale: k * k_scale, f32 of a shape that
// broadcasts to k and has 1 for d. The product with a key then is multiplied by its scale.
Expr attention_scores(Expr q, Expr k);
// For a paged cache: k is [pages of all, page, kv_heads, d], and `pages` i32 [sequences, pages of one] names those of each sequence in the
// order of the keys; keys = pages of one * page.
Expr attention_scores(Expr q, Expr k, Expr pages);
// `scores` is computed from attention_scores, pointwise. For the first `lengths` keys of each sequence: the sum of the rows of v times the
// softmax of the scores, f32 of the shape of q; 0 where no key has a score. Scores below -1e30 are none. `lengths` is i32 [sequences, 1,
// 1], with tokens [sequences, 1, 1, 1]; v lies as k does. What lies beyond a length is not read. v of 8 bits may come with a scale as k:
// elements times the scale of their key are rounded to q's type. v may be columns(k, 0, n), the first n elements of each key: the result
// has n in place of d.
Expr attention(Expr scores, Expr v, Expr lengths);
// The logarithm of the sum of the exponentials of the same scores: [sequences, heads, 1], or with tokens; minus infinity for none.
Expr log_sum_exp(Expr scores, Expr lengths);

// The order of a result's dimensions that has the heads in front: [sequences, heads, n] -> [heads, sequences, n], [sequences, tokens,
// heads, n] -> [heads, sequences, tokens, n]. It stands directly below an output of a kernel with attention.
Expr heads_first(Expr x);

inline constexpr float min_score = -1e30f; // what is below counts as minus infinity

// What an operand k or v is made of: an input, its scale, and how many elements of each head are taken (0: all).
struct CacheOperand {
  Expr cache;
  std::optional<Expr> scale = {};
  std::int64_t columns = 0;
};
// Nothing for other expressions than x, x * scale, and columns of these, of an input x of four dimensions.
std::optional<CacheOperand> find_cache_operand(const Expr& operand);
CacheOperand cache_operand(const Expr& operand); // of a node of attention: there is one

// The node of attention_scores that `scores` is computed from.
Expr scores_node(const Expr& scores);

} // namespace kiln
