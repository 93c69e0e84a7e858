// Attention: construction of its nodes, and what their operands must be.
#include "gen/spec/attention.h"
#include "gen/error.h"
#include "gen/spec/graph.h"
#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

std::string operand_of(Op op, std::string_view operand) { return fmt::format("operation '{}', operand {}", info(op).name, operand); }

void require_tensor(Op op, std::string_view which, const Expr& e, std::string_view shape, bool right_rank) {
  const auto subject = operand_of(op, which);
  if (e.op() != Op::input)
    throw UserError(subject, fmt::format("it is a '{}', not an input", info(e.op()).name),
                    "compute it in a kernel of its own: attention reads its operands from memory");
  if (!right_rank) throw UserError(subject, fmt::format("its shape is {}", to_text(e.shape())), fmt::format("give it {}", shape));
  if (e->layout != Layout::contiguous) throw UserError(subject, fmt::format("it is{}", suffix(e->layout)), "use Layout::contiguous");
}

void require_numbers(Op op, std::string_view which, const Expr& e, std::size_t first) {
  for (std::size_t i = first; i < e.shape().size(); ++i)
    if (e.shape()[i].is_dynamic())
      throw UserError(operand_of(op, which), fmt::format("its dimension '{}' is known only at launch", e.shape()[i].name()),
                      "give heads, d, tokens and the size of pages as numbers: kernels are specialised for them");
}

bool is_one(const Dim& dim) { return same_size(dim, 1); }

// For all, for each head, for each key, or for each head of each key.
void require_scale(Op op, const Expr& cache, const Expr& scale) {
  const auto subject = fmt::format("operation '{}', scale '{}'", info(op).name, scale->name);
  if (size_bytes(cache.dtype()) != 1)
    throw UserError(subject, fmt::format("it is the scale of '{}', which is {}", cache->name, to_string(cache.dtype())),
                    "give scales to caches of 8 bits, and multiply scores or results else");
  if (scale.dtype() != f32) throw UserError(subject, fmt::format("it is {}", to_string(scale.dtype())), "use f32");
  if (scale->layout != Layout::contiguous)
    throw UserError(subject, fmt::format("it is{}", suffix(scale->layout)), "use Layout::contiguous");
  const Shape &full = cache.shape(), &shape = scale.shape();
  const std::size_t skipped = shape.size() > full.size() ? 0 : full.size() - shape.size();
  bool fits = shape.size() <= full.size() && (shape.empty() || is_one(shape.back()));
  bool has_keys = false, lacks_keys = false;
  for (std::size_t i = 0; fits && i + 1 < full.size(); ++i) {
    const Dim dim = i < skipped ? Dim(1) : shape[i - skipped];
    fits = is_one(dim) || same_size(dim, full[i]);
    if (i < 2) (same_size(dim, full[i]) ? has_keys : lacks_keys) |= !is_one(full[i]);
  }
  if (!fits || (has_keys && lacks_keys))
    throw UserError(subject, fmt::format("its shape is {}, and the cache's {}", to_text(shape), to_text(full)),
                    fmt::format("give it [], [{1}, 1], [{0}, 1, 1] or [{0}, {1}, 1]", fmt::format("{}, {}", full[0].text(), full[1].text()),
                                full[2].text()));
}

// The operand's parts, if it is an input of four dimensions with or without a scale.
CacheOperand require_cache(Op op, std::string_view which, const Expr& e, std::string_view shape) {
  const std::optional<CacheOperand> found = find_cache_operand(e);
  if (!found && e.op() == Op::columns)
    throw UserError(operand_of(op, which), fmt::format("it is {} columns from {} on", e.shape().back().text(), e->first),
                    "use the first ones: columns(k, 0, n)");
  if (!found && e.op() == Op::mul)
    throw UserError(operand_of(op, which), "it is a product, but not of an input and a scale",
                    fmt::format("give an input {}, alone or times an f32 input with 1 in the place of d", shape));
  if (!found) {
    require_tensor(op, which, e, shape, false); // says why
    throw InternalError("a cache operand that is refused without a reason");
  }
  require_tensor(op, which, found->cache, shape, true);
  if (found->scale) require_scale(op, found->cache, *found->scale);
  return *found;
}

void require_queries_and_keys(Op op, const Expr& q, const Expr& operand) {
  const std::size_t rank = q.shape().size();
  require_tensor(op, "q", q, "[sequences, heads, d] or [sequences, tokens, heads, d]", rank == 3 || rank == 4);
  const auto [k, scale, columns] =
      require_cache(op, "k", operand, op == Op::attention_scores ? "[sequences, keys, kv_heads, d]" : "[pages, page, kv_heads, d]");
  if (columns)
    throw UserError(operand_of(op, "k"), fmt::format("it is {} columns of '{}'", columns, k->name),
                    "give all elements of a key: queries have as many");
  require_numbers(op, "q", q, 1);
  require_numbers(op, "k", k, op == Op::attention_scores ? 2 : 1);
  if (q.dtype() != f16 && q.dtype() != bf16)
    throw UserError(operand_of(op, "q"), fmt::format("it is {}", to_string(q.dtype())), "use f16 or bf16");
  if (k.dtype() != q.dtype() && !is_fp8(k.dtype()) && k.dtype() != i8)
    throw UserError(operand_of(op, "k"), fmt::format("it is {}, and q is {}", to_string(k.dtype()), to_string(q.dtype())),
                    fmt::format("use {}, an fp8 or i8", to_string(q.dtype())));
  const std::int64_t heads = q.shape()[rank - 2].size(), kv_heads = k.shape()[2].size();
  if (heads % kv_heads)
    throw UserError(operand_of(op, "k"), fmt::format("it has {} heads, and q {}", kv_heads, heads),
                    "give q a multiple of the heads of k: each reads one of them");
  if (!same_size(q.shape().back(), k.shape().back()))
    throw UserError(operand_of(op, "k"),
                    fmt::format("its heads have {} elements, those of q {}", k.shape()[3].text(), q.shape().back().text()),
                    "give both the same last dimension");
}

Expr scores_of(Op op, std::vector<Expr> operands, Dim keys) {
  Shape shape = operands[0].shape();
  shape.back() = std::move(keys);
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = std::move(operands)});
}

// `scores` has the shape of the scores that it is computed from, and lengths fit it.
Expr require_scores(Op op, const Expr& scores, const Expr& lengths) {
  const Expr node = scores_node(scores);
  if (scores.shape() != node.shape() || scores.dtype() == boolean)
    throw UserError(operand_of(op, "scores"),
                    fmt::format("it is {}, and the products of q and k are f32{}", type_text(scores), to_text(node.shape())),
                    "compute one number for each of them");
  const auto fits = [&] {
    const Shape& shape = lengths.shape();
    return shape.size() == node.shape().size() && same_size(shape[0], node.shape()[0]) &&
           std::ranges::all_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return same_size(dim, 1); });
  };
  Shape wanted(node.shape().size(), 1);
  wanted[0] = node.shape()[0];
  require_tensor(op, "lengths", lengths, to_text(wanted) + ", one number a sequence", fits());
  if (lengths.dtype() != i32) throw UserError(operand_of(op, "lengths"), fmt::format("it is {}", to_string(lengths.dtype())), "use i32");
  return node;
}

} // namespace

std::optional<CacheOperand> find_cache_operand(const Expr& operand) {
  if (operand.op() == Op::input) return operand.shape().size() == 4 ? std::optional(CacheOperand{operand}) : std::nullopt;
  if (operand.op() == Op::columns && operand->first == 0) {
    std::optional<CacheOperand> whole = find_cache_operand(operand.operands()[0]);
    if (!whole || whole->columns) return {};
    whole->columns = operand.shape().back().size();
    return whole;
  }
  if (operand.op() != Op::mul) return {};
  // The scale is the one with a single number for d.
  const auto is_scale = [](const Expr& e) { return e.op() == Op::input && (e.shape().empty() || is_one(e.shape().back())); };
  for (const std::size_t i : {1u, 0u})
    if (const Expr& scale = operand.operands()[i]; is_scale(scale)) {
      std::optional<CacheOperand> whole = find_cache_operand(operand.operands()[1 - i]);
      if (!whole || whole->scale) return {};
      whole->scale = scale;
      return whole;
    }
  return {};
}

CacheOperand cache_operand(const Expr& operand) {
  if (const auto found = find_cache_operand(operand)) return *found;
  throw InternalError("an operand of attention that is no cache");
}

Expr heads_first(Expr x) {
  Shape shape = x.shape();
  if (shape.size() != 3 && shape.size() != 4)
    throw UserError("operation 'heads_first'", fmt::format("its operand has the shape {}", to_text(shape)),
                    "give it [sequences, heads, n] or [sequences, tokens, heads, n], as attention makes them");
  std::rotate(shape.begin(), shape.end() - 2, shape.end() - 1);
  const DType type = x.dtype();
  return Expr(Node{.op = Op::heads_first, .dtype = type, .shape = std::move(shape), .operands = {std::move(x)}});
}

Expr scores_node(const Expr& scores) {
  std::optional<Expr> found;
  for (const Expr& node : nodes_in_order({&scores, 1})) {
    if (info(node.op()).kind != OpKind::scores) continue;
    if (found && !found->same_node(node) &&
        (found->op() != node.op() || !std::ranges::equal(found->operands(), node.operands(), [](const Expr& a, const Expr& b) {
           const auto x = find_cache_operand(a), y = find_cache_operand(b);
           if (!x || !y) return a->name == b->name && a.shape() == b.shape();
           const auto scale_of = [](const CacheOperand& o) { return o.scale ? (*o.scale)->name : ""; };
           return x->cache->name == y->cache->name && x->cache.shape() == y->cache.shape() && scale_of(*x) == scale_of(*y);
         })))
      throw UserError("operation 'attention', operand scores", "it is computed from two products of queries and keys",
                      "use one attention_scores");
    found = node;
  }
  if (!found)
    throw UserError("operation 'attention', operand scores", "it is not computed from attention_scores",
                    "compute it from attention_scores(q, k), or use softmax and a product");
  return *found;
}

Expr attention_scores(Expr q, Expr k) {
  constexpr Op op = Op::attention_scores;
  require_queries_and_keys(op, q, k);
  if (!same_size(q.shape()[0], k.shape()[0]))
    throw UserError(operand_of(op, "k"), fmt::format("it has {} sequences, and q {}", k.shape()[0].text(), q.shape()[0].text()),
                    "give both the same first dimension; a paged cache takes a table: attention_scores(q, k, pages)");
  Dim keys = k.shape()[1];
  return scores_of(op, {std::move(q), std::move(k)}, std::move(keys));
}

Expr attention_scores(Expr q, Expr k, Expr pages) {
  constexpr Op op = Op::attention_scores_paged;
  require_queries_and_keys(op, q, k);
  const auto fits = [&] {
    return pages.shape().size() == 2 && same_size(pages.shape()[0], q.shape()[0]) && !pages.shape()[1].is_dynamic();
  };
  require_tensor(op, "pages", pages, fmt::format("[{}, pages of one sequence], the latter a number", q.shape()[0].text()), fits());
  if (pages.dtype() != i32) throw UserError(operand_of(op, "pages"), fmt::format("it is {}", to_string(pages.dtype())), "use i32");
  const std::int64_t keys = pages.shape()[1].size() * k.shape()[1].size();
  if (keys > max_dim_size)
    throw UserError(operand_of(op, "pages"), fmt::format("a sequence has {} keys", keys), fmt::format("use at most {}", max_dim_size));
  return scores_of(op, {std::move(q), std::move(k), std::move(pages)}, keys);
}

Expr attention(Expr scores, Expr v, Expr lengths) {
  constexpr Op op = Op::attention;
  const Expr node = require_scores(op, scores, lengths);
  const Expr& q = node.operands()[0];
  const Expr k = cache_operand(node.operands()[1]).cache;
  const auto [cache, scale, columns] = require_cache(op, "v", v, to_text(k.shape()));
  require_tensor(op, "v", cache, to_text(k.shape()), cache.shape() == k.shape());
  if (cache.dtype() != k.dtype())
    throw UserError(operand_of(op, "v"), fmt::format("it is {}, and k is {}", to_string(cache.dtype()), to_string(k.dtype())),
                    "use one type for both");
  if (columns && cache->name != k->name)
    throw UserError(operand_of(op, "v"), fmt::format("it is {} columns of '{}', and k is '{}'", columns, cache->name, k->name),
                    "take columns of k, or all of a tensor of k's shape");
  Shape shape = q.shape();
  if (columns) shape.back() = columns;
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = {std::move(scores), std::move(v), std::move(lengths)}});
}

Expr log_sum_exp(Expr scores, Expr lengths) {
  constexpr Op op = Op::log_sum_exp;
  Shape shape = require_scores(op, scores, lengths).shape();
  shape.back() = 1;
  return Expr(Node{.op = op, .dtype = f32, .shape = std::move(shape), .operands = {std::move(scores), std::move(lengths)}});
}

} // namespace kiln
