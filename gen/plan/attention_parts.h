// Parts of attention: what a spec with it is made of beside the epilogue, operands and the score expression.
#pragma once
#include "gen/plan/plan.h"
#include <optional>
#include <set>

namespace kiln {

struct AttentionParts {
  Expr q, k, v, lengths;                // inputs
  std::optional<Expr> k_scale, v_scale; // inputs: of caches of 8 bits
  std::int64_t value_d = 0;             // elements of a head of v; less than d where v is the first ones of k
  std::optional<Expr> pages;            // input: the pages of each sequence
  // The score expression, whose input `product` stands for the products of q and k: [sequences, (tokens,) heads, keys].
  KernelSpec scores;
  Body score_body;
  // The names of inputs that the two parts have and the spec does not: the products, the result, and its log-sum-exp, if it is used.
  std::string product, result, log_sum_exp;
  std::set<std::string> heads_first; // outputs whose first dimension in memory are the heads
  int line = 0;                      // of the spec's text, as Node::line

  const Dim& sequences() const { return q.shape()[0]; }
  const Dim& keys() const { return score_body.space.back(); } // that a sequence has room for
  std::int64_t tokens() const { return q.shape().size() == 4 ? q.shape()[1].size() : 1; }
  std::int64_t heads() const { return q.shape()[q.shape().size() - 2].size(); }
  std::int64_t kv_heads() const { return k.shape()[2].size(); }
  std::int64_t d() const { return q.shape().back().size(); }
  std::int64_t page() const { return pages ? k.shape()[1].size() : 0; } // keys of a page; 0 without pages
  bool is_placeholder(std::string_view name) const { return name == product || name == result || (name == log_sum_exp && !name.empty()); }
};

// Throws UserError when the spec has two attentions, uses their operands for anything else, or has scores that cannot be computed key by
// key.
PartSplit split_attention(const SpecGraph& graph);

bool has_attention(const AnalysedSpec& spec);
const AttentionParts& attention_of(const AnalysedSpec& spec); // of one that has it

} // namespace kiln
