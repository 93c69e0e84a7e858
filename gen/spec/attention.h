// Attention: softmax(scores) x values over the keys of a cache, with the score as an expression. docs/attention.md explains it.
#pragma once
#include "gen/spec/expr.h"

namespace kiln {

// Products of queries and keys, in f32: [sequences, heads, keys], or [sequences, tokens, heads, keys] with several queries a sequence.
// q is [sequences, heads, d] or [sequences, tokens, heads, d], of f16 or bf16; k [sequences, keys, kv_heads, d], of q's type, an fp8 or
// i8. heads / kv_heads heads of q in sequence read one head of k.
Expr attention_scores(Expr q, Expr k);
// For a paged cache: k is [pages of all, page, kv_heads, d], and `pages` i32 [sequences, pages of one] names those of each sequence in the
// order of the keys; keys = pages of one * page.
Expr attention_scores(Expr q, Expr k, Expr pages);
// `scores` is computed from attention_scores, pointwise. For the first `lengths` keys of each sequence: the sum of the rows of v times the
// softmax of the scores, f32 of the shape of q; 0 where no key has a score. Scores below -1e30 are none. `lengths` is i32 [sequences, 1,
// 1], with tokens [sequences, 1, 1, 1]; v lies as k does. What lies beyond a length is not read.
Expr attention(Expr scores, Expr v, Expr lengths);
// The logarithm of the sum of the exponentials of the same scores: [sequences, heads, 1], or with tokens; minus infinity for none.
Expr log_sum_exp(Expr scores, Expr lengths);

inline constexpr float least_score = -1e30f; // what is below counts as minus infinity

// The node of attention_scores that `scores` is computed from.
Expr scores_node(const Expr& scores);

} // namespace kiln
