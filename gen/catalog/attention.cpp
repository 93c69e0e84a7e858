// Attention of the catalogue: a contiguous or paged cache, of 8 bits with a scale for its keys and one for its values.
#include "gen/spec/attention.h"
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"
#include <cmath>

namespace kiln {
namespace {

// A cache of 8 bits has a scale for its keys and one for its values, each one for the tensor.
KernelSpec attention_of(const char* kernel, const CatalogOptions& options, const Expr& q, const Expr& products, const Expr& v,
                        const Expr& lengths) {
  const bool scaled = size_bytes(v.dtype()) == 1, latent = v.op() == Op::columns;
  const double scale = 1 / std::sqrt(static_cast<double>(options.d));
  const Expr scores = scaled ? products * (input("k_scale", f32, {}) * scale) : products * scale;
  const Expr result = attention(scores, v, lengths);
  return KernelSpec(kernel).output("o", q.dtype(), scaled ? result * input(latent ? "k_scale" : "v_scale", f32, {}) : result);
}

// Values: a tensor as k, or of one latent head, as MLA keeps it, the first 512 of its 576 elements.
Expr values_of(const Expr& k) { return k.shape().back() == Dim(576) ? columns(k, 0, 512) : input("v", k.dtype(), k.shape()); }

struct AttentionInputs {
  Dim sequences = dynamic("sequences");
  Expr q, lengths;
  DType cache;
  explicit AttentionInputs(const CatalogOptions& options)
      : q(input("q", options.dtype, {sequences, options.heads, options.d})), lengths(input("lengths", i32, {sequences, 1, 1})),
        cache(options.cache == f32 ? options.dtype : options.cache) {}
};

} // namespace

KernelSpec attention_decode(const CatalogOptions& options) {
  const AttentionInputs in(options);
  const Expr k = input("k", in.cache, {in.sequences, options.length, options.kv_heads, options.d});
  return attention_of("attention_decode", options, in.q, attention_scores(in.q, k), values_of(k), in.lengths);
}

KernelSpec attention_paged(const CatalogOptions& options) {
  const AttentionInputs in(options);
  const Expr k = input("k", in.cache, {dynamic("pages_of_all"), options.page, options.kv_heads, options.d});
  const Expr pages = input("pages", i32, {in.sequences, (options.length + options.page - 1) / options.page});
  return attention_of("attention_paged", options, in.q, attention_scores(in.q, k, pages), values_of(k), in.lengths);
}

} // namespace kiln
