// The catalogue: the spec of each entry, and its line in the registry.
#include "gen/catalog/catalog.h"
#include "gen/catalog/entries.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <vector>

namespace kiln {
namespace {

constexpr double norm_epsilon = 1e-6; // of RMS and layer norm: Llama's rms_norm_eps
constexpr double min_absmax = 1e-12;  // keeps the scale of an all-zero row above zero

Shape activation_shape(const CatalogOptions& options) { return {dynamic_rows(options), options.cols}; }
// One value a column: norm weights, biases.
Expr column_vector(const char* name, const CatalogOptions& options) { return input(name, options.dtype, {options.cols}); }
// One f32 for the whole tensor, in device memory, as quantisation toolkits leave it.
Expr tensor_scale() { return input("scale", f32, {}); }
// The scale that maps the largest magnitude to the largest fp8 number.
Expr scale_of(const Expr& absmax, DType fp8) { return max(absmax, min_absmax) / max_finite(fp8); }

// ---- norms and softmax, over the columns of each row

Expr rms_normalised(const Expr& x, const Expr& weight) { return x * rsqrt(row_mean(x * x) + norm_epsilon) * weight; }

KernelSpec add_rmsnorm_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options), residual = activation("residual", options);
  const Expr weight = column_vector("weight", options);
  const Expr h = cast(options.dtype, x + residual); // the rounded residual is what the next layer sees, so this one does too
  const Expr y = rms_normalised(h, weight);

  KernelSpec spec(options.dynamic_scale ? "add_rmsnorm_dynamic_quant" : "add_rmsnorm_quant");
  spec.output("residual_out", options.dtype, h, {.in_place_of = options.in_place ? "residual" : ""});
  const Expr scale = options.dynamic_scale ? scale_of(row_absmax(y), options.fp8) : tensor_scale();
  if (options.dynamic_scale) spec.output("scale", f32, scale);
  return spec.output("q", options.fp8, y / scale);
}

KernelSpec add_rmsnorm_dynamic_quant(const CatalogOptions& options) {
  CatalogOptions dynamic_options = options;
  dynamic_options.dynamic_scale = true;
  return add_rmsnorm_quant(dynamic_options);
}

KernelSpec rmsnorm(const CatalogOptions& options) {
  const Expr x = activation("x", options), weight = column_vector("weight", options);
  return KernelSpec("rmsnorm").output("y", options.dtype, rms_normalised(x, weight));
}

KernelSpec layernorm(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr weight = column_vector("weight", options), bias = column_vector("bias", options);
  const Expr centred = x - row_mean(x);
  const Expr y = centred * rsqrt(row_mean(centred * centred) + norm_epsilon) * weight + bias;
  return KernelSpec("layernorm").output("y", options.dtype, y);
}

// ---- rows by index: what a decode step reads and writes by token, position and slot

KernelSpec embedding(const CatalogOptions& options) {
  const Expr table = input("table", options.dtype, {dynamic("vocabulary", 1), options.cols});
  return KernelSpec("embedding").output("y", options.dtype, gather(table, input("ids", options.index, {dynamic_rows(options), 1})));
}

// Rows are tokens; heads of a token may lie in a wider row, that of q, k and v together.
Expr heads(const char* name, const CatalogOptions& options) {
  return input(name, options.dtype, {dynamic_rows(options), options.heads, options.cols}, Layout::strided);
}
Expr of_token(const char* name, const CatalogOptions& options) { return input(name, options.index, {dynamic_rows(options), 1, 1}); }

// Turned by the angles of the token's position. The two tables may be halves of one.
Expr turned(Expr x, const CatalogOptions& options) {
  const std::int64_t pairs = options.cols / 2, distance = options.interleaved ? 1 : pairs;
  const Expr position = of_token("position", options);
  const auto angle = [&](const char* name) {
    const Expr table = input(name, options.dtype, {dynamic("positions", 1), pairs}, Layout::strided);
    return options.interleaved ? repeat(gather(table, position), 2) : tile(gather(table, position), 2);
  };
  if (options.head_norm) x = rms_normalised(x, column_vector("norm_weight", options));
  return x * angle("cos_table") + rotate(x, distance) * angle("sin_table");
}

KernelSpec rope(const CatalogOptions& options) {
  return KernelSpec("rope").output("y", options.dtype, turned(heads("x", options), options),
                                   {.in_place_of = options.in_place ? "x" : "", .layout = Layout::strided});
}

// Two problems where q and k have unlike numbers of heads.
KernelSpec qk_norm(const CatalogOptions& options) {
  CatalogOptions of_k = options;
  of_k.heads = options.kv_heads;
  KernelSpec spec("qk_norm");
  const auto norm = [&](const std::string& name, const Expr& x) {
    OutputOptions place;
    if (options.in_place) place = {.in_place_of = name, .layout = Layout::strided};
    spec.output(name + "_out", options.dtype, rms_normalised(x, column_vector((name + "_weight").c_str(), options)), place);
  };
  norm("q", heads("q", options));
  norm("k", heads("k", of_k));
  return spec;
}

// k is turned, v as it is; both go to the rows of a paged cache that the slots name, [slots, heads, cols].
KernelSpec rope_kv_write(const CatalogOptions& options) {
  const DType type = options.fp8_cache ? options.fp8 : options.dtype;
  const Expr slot = of_token("slot", options);
  KernelSpec spec("rope_kv_write");
  const auto write = [&](const std::string& name, const Expr& value) {
    const Expr cache = input(name + "_cache", type, {dynamic("slots"), options.heads, options.cols});
    const Expr stored = options.fp8_cache ? value / input(name + "_scale", f32, {}) : value;
    spec.output(name + "_cache_out", type, scatter(cache, slot, stored), {.in_place_of = name + "_cache"});
  };
  write("k", turned(heads("k", options), options));
  write("v", heads("v", options));
  return spec;
}

// ---- to fp8 and back, with one scale a row or a group

KernelSpec per_token_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(row_absmax(x), options.fp8);
  return KernelSpec("per_token_quant").output("scale", f32, scale).output("q", options.fp8, x / scale);
}

Expr in_order(const Expr& scale, const CatalogOptions& options) { return options.transposed ? transpose(scale) : scale; }

KernelSpec group_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(group_absmax(x, options.group), options.fp8);
  const Expr of_element = ungroup(scale, options.group, options.cols);
  return KernelSpec("group_quant").output("scale", f32, in_order(scale, options)).output("q", options.fp8, x / of_element);
}

KernelSpec dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options)), scale = input("scale", f32, {dynamic_rows(options), 1});
  return KernelSpec("dequant").output("y", options.dtype, q * scale);
}

KernelSpec group_dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options));
  const Expr scale = input("scale", f32, {dynamic_rows(options), group_count(options.cols, options.group)});
  return KernelSpec("group_dequant").output("y", options.dtype, q * ungroup(scale, options.group, options.cols));
}

// ---- to MX formats and back: blocks of 32 columns with a power of two each

void add_mx_outputs(KernelSpec& spec, const Expr& y, const CatalogOptions& options) {
  const Expr scale = mx_scale(options.mx, y);
  spec.output("scale", e8m0, in_order(scale, options)).output("q", options.mx, mx_quantise(options.mx, y, scale));
}

KernelSpec mx_quant(const CatalogOptions& options) {
  KernelSpec spec("mx_quant");
  add_mx_outputs(spec, activation("x", options), options);
  return spec;
}

KernelSpec mx_dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.mx, activation_shape(options));
  const Expr scale = input("scale", e8m0, {dynamic("rows"), group_count(options.cols, mx_block)});
  return KernelSpec("mx_dequant").output("y", options.dtype, mx_dequantise(q, scale));
}

KernelSpec silu_mul_mx_quant(const CatalogOptions& options) {
  KernelSpec spec("silu_mul_mx_quant");
  const Expr gate = activation("gate", options), up = activation("up", options);
  add_mx_outputs(spec, silu(gate) * up, options);
  return spec;
}

KernelSpec add_rmsnorm_mx_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options), residual = activation("residual", options);
  const Expr h = cast(options.dtype, x + residual);
  KernelSpec spec("add_rmsnorm_mx_quant");
  spec.output("residual_out", options.dtype, h, {.in_place_of = options.in_place ? "residual" : ""});
  add_mx_outputs(spec, rms_normalised(h, column_vector("weight", options)), options);
  return spec;
}

KernelSpec cast_quant(const CatalogOptions& options) { return KernelSpec("cast_quant").output("q", options.fp8, activation("x", options)); }

// ---- the registry: one line an entry

constexpr CatalogKind blocks{.blocks = true}, matrices{.matrices = true}, ranked_rows{.ranked = true}, of_experts{.experts = true},
    of_heads{.rope = true}, of_state{.state = true}, mx_rows{.mx = true}, product{.gemm = true},
    ranked_product{.gemm = true, .ranked = true}, mx_product{.gemm = true, .mx = true}, of_attention{.attention = true},
    product_by_expert{.gemm = true, .experts = true}, lora_product{.gemm = true, .lora = true};

constexpr CatalogEntry entries[] = {
    {"add_rmsnorm_quant", "residual add, RMS norm, fp8 with a given scale (or dynamic_scale)",
     "cols max_rows dtype fp8 dynamic_scale in_place", add_rmsnorm_quant},
    {"add_rmsnorm_dynamic_quant", "residual add, RMS norm, fp8 with one scale a token", "cols max_rows dtype fp8 in_place",
     add_rmsnorm_dynamic_quant},
    {"rmsnorm", "RMS norm with a weight a column", "cols max_rows dtype", rmsnorm},
    {"layernorm", "layer norm with weight and bias a column", "cols max_rows dtype", layernorm},
    {"softmax", "softmax of each row", "cols max_rows dtype", softmax},
    {"softmax_temperature", "softmax of each row over its temperature, f32", "cols max_rows dtype", softmax_temperature},
    {"argmax_rows", "the column of the largest element of each row, the lowest of those alike, and its value", "cols max_rows dtype",
     argmax_rows},
    {"sample_gumbel", "a token by the softmax of logits over its temperature: the largest with Gumbel noise of a seed and an offset",
     "cols max_rows dtype", sample_gumbel},
    {"sample_top_k_top_p", "the same of the k largest logits, k to 256, that top-p and min-p leave, each with a number a row",
     "cols max_rows dtype", sample_top_k_top_p},
    {"hadamard", "Hadamard transform of every `group` columns of a row, over the root of their number",
     "cols max_rows dtype group in_place", hadamard_blocks, blocks},
    {"sinkhorn", "each `side` x `side` matrix of a row: exp, then rows and columns divided by their sums, `times` times",
     "cols max_rows dtype side times", sinkhorn_matrices, matrices},
    {"layernorm_modulate", "layer norm, times 1 + scale and plus shift of the row's batch", "cols dtype", layernorm_modulate},
    {"lse_merge", "two partial attention results by their log-sum-exp", "cols dtype", lse_merge},
    {"topk_softmax", "the `top` experts of each row of logits, and their weights by softmax or sigmoid", "cols dtype top sigmoid sorted",
     topk_softmax, ranked_rows},
    {"moe_sort", "pairs of a token and one of its experts in the order of the experts, and where each expert's begin", "top experts",
     moe_sort, of_experts},
    {"embedding", "rows of a table by id; zeros for a negative id", "cols max_rows dtype index", embedding},
    {"rope", "rotary embedding of each head by position, neox or interleaved, optional norm of heads",
     "cols max_rows dtype in_place heads index interleaved head_norm", rope, of_heads},
    {"qk_norm", "RMS norm of each head of q and of k, with a weight for each of the two, in one launch",
     "cols max_rows dtype in_place heads kv_heads", qk_norm, of_heads},
    {"rope_kv_write", "rope of k, and k and v into a paged cache by slot; fp8 with given scales as an option",
     "cols max_rows dtype fp8 heads index interleaved head_norm fp8_cache", rope_kv_write, of_heads},
    {"swiglu_quant", "silu(gate) * up, fp8 with a given scale", "cols max_rows dtype fp8", swiglu_quant},
    {"gelu_mul", "gelu(gate) * up, gelu by erf", "cols max_rows dtype", gelu_mul},
    {"silu_mul", "silu(gate) * up", "cols max_rows dtype", silu_mul},
    {"clamped_swiglu", "(up + 1) * gate * sigmoid(1.702 gate), both limited to 7: gpt-oss", "cols max_rows dtype", clamped_swiglu},
    {"conv1d_update", "causal convolution of `width` tokens and silu, its state by slot in place; several tokens as an option",
     "cols dtype index tokens width", conv1d_update, of_state},
    {"gated_delta_update", "gated delta rule: each head's state [d, cols] by slot in place, and what is read from it",
     "cols dtype heads kv_heads d index state tokens per_channel", gated_delta_update, of_state},
    {"ssm_update", "Mamba-2's state space: each head's state [d, cols] by slot in place, and what is read from it",
     "cols dtype heads kv_heads d index state tokens", ssm_update, of_state},
    {"gated_norm", "RMS norm times silu(gate), or of x * silu(gate)", "cols max_rows dtype gate_first", gated_norm},
    {"add_bias_gelu", "gelu(x + bias), gelu by tanh", "cols max_rows dtype", add_bias_gelu},
    {"per_token_quant", "fp8 with one scale a row", "cols max_rows dtype fp8", per_token_quant},
    {"group_quant", "fp8 with one scale for every `group` columns of a row", "cols max_rows dtype fp8 group transposed", group_quant},
    {"dequant", "fp8 times one scale a row", "cols max_rows dtype fp8", dequant},
    {"group_dequant", "fp8 times one scale for every `group` columns of a row", "cols max_rows dtype fp8 group", group_dequant},
    {"mx_quant", "MXFP4 or MXFP8: OCP microscaling, a power of two for every 32 columns", "cols max_rows dtype mx transposed", mx_quant,
     mx_rows},
    {"mx_dequant", "MXFP4 or MXFP8 to activations", "cols max_rows dtype mx", mx_dequant, mx_rows},
    {"silu_mul_mx_quant", "silu(gate) * up, MXFP4 or MXFP8", "cols max_rows dtype mx transposed", silu_mul_mx_quant, mx_rows},
    {"add_rmsnorm_mx_quant", "residual add, RMS norm, MXFP4 or MXFP8", "cols max_rows dtype mx transposed in_place", add_rmsnorm_mx_quant,
     mx_rows},
    {"scaled_add", "x + alpha * y, alpha given at launch", "cols max_rows dtype", scaled_add},
    {"cast", "rounding to fp8 without a scale", "cols max_rows dtype fp8", cast_quant},
    {"gemm", "skinny a x b^T; fp8 and i8 with a scale a row of each", "m n k dtype preshuffled", gemm, product},
    {"gemm_quant", "gemm, fp8 with a given scale", "m n k dtype fp8 preshuffled", gemm_quant, product},
    {"router", "gemm to the logits of n experts, the `top` of each row and their weights, in one launch",
     "m n k dtype preshuffled top sigmoid sorted", router, ranked_product},
    {"gemm_bias", "gemm + bias", "m n k dtype preshuffled", gemm_bias, product},
    {"gemm_residual", "gemm + residual", "m n k dtype preshuffled in_place", gemm_residual, product},
    {"gemm_gelu_residual_row_quant", "gelu(gemm + bias) + residual, fp8 with one scale a row of all n columns, in one launch",
     "m n k dtype fp8 preshuffled", gemm_gelu_residual_row_quant, product},
    {"gemm_swiglu_quant", "silu(gate) * up of one product's halves, fp8 with a given scale", "m n k dtype fp8 preshuffled",
     gemm_swiglu_quant, product},
    {"gemm_w8a16", "f16 or bf16 a, fp8 b with a scale a row", "m n k dtype fp8 preshuffled", gemm_w8a16, product},
    {"gemm_w4a16", "f16 or bf16 a, 4-bit b with a scale and a zero point for every `group` elements of k",
     "m n k dtype group preshuffled packed_zeros", gemm_w4a16, product},
    {"gemm_w_mxfp4", "f16 or bf16 a, MXFP4 b: e2m1 with a power of two for every 32 elements of k", "m n k dtype preshuffled", gemm_w_mxfp4,
     mx_product},
    {"gemm_mx", "MX a and b (a8w8, a4w4, a8w4), powers of two for every 32 elements of k of both",
     "m n k dtype mx preshuffled transposed weights", gemm_mx, mx_product},
    {"gemm_dynamic_quant", "rows of f16 or bf16 a quantised to fp8 by their absmax inside the product, fp8 b",
     "m n k dtype fp8 preshuffled", gemm_dynamic_quant, product},
    {"attention_decode", "softmax(q x k) x v of one query a sequence, the cache contiguous; 8-bit caches with a scale of k and one of v",
     "dtype heads kv_heads d length cache_dtype", attention_decode, of_attention},
    {"attention_paged", "the same with a paged cache, and a table of the pages of each sequence",
     "dtype heads kv_heads d length page cache_dtype", attention_paged, of_attention},
    {"grouped_gemm", "each token with the matrices of its experts, pairs sorted by expert; MXFP4 or scales of blocks as an option",
     "m n k dtype top experts weights", grouped_gemm, product_by_expert},
    {"grouped_gemm_swiglu", "the same: silu(gate) * up of the product's halves", "m n k dtype top experts weights", grouped_gemm_swiglu,
     product_by_expert},
    {"grouped_gemm_sum", "each pair with its expert's matrix, and the weighted sum of a token's, in one launch",
     "m n k dtype top experts weights", grouped_gemm_sum, product_by_expert},
    {"lora_shrink", "rows by the narrow matrix of each's adapter", "m k dtype experts rank", lora_shrink, lora_product},
    {"lora_expand_add", "the same with the wide one, added to a base product", "m n dtype experts rank", lora_expand_add, lora_product},
    {"gemm_lora", "a product, and the narrow one of an adapter that all rows share, in one launch", "m n k dtype rank", gemm_lora,
     lora_product},
    {"gemm_lora_add", "gemm_lora and the wide product, in one launch", "m n k dtype rank", gemm_lora_add, lora_product},
    {"gemm_block_scaled", "fp8 (or i8) with scales of 1x128 of a and 128x128 of b", "m n k dtype fp8 preshuffled transposed",
     gemm_block_scaled, product},
};

} // namespace

Dim dynamic_rows(const CatalogOptions& options) {
  return options.max_rows > 0 ? dynamic("rows", std::nullopt, options.max_rows) : dynamic("rows");
}
Expr activation(const char* name, const CatalogOptions& options) { return input(name, options.dtype, activation_shape(options)); }

std::span<const CatalogEntry> catalog() { return entries; }

CatalogOptions default_options(std::string_view name) {
  CatalogOptions options;
  const auto entry = std::ranges::find(entries, name, &CatalogEntry::name);
  if (entry != std::end(entries) && entry->is.state && entry->name != "conv1d_update") options.cols = 128; // elements of a head
  if (entry != std::end(entries) && entry->is.ranked) options.cols = options.n = 256; // experts, as large models have them
  return options;
}

KernelSpec catalog_spec(std::string_view name, const CatalogOptions& options) {
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : entries) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    if (const auto refusal = why_not(entry, options)) throw UserError(*refusal);
    return entry.build(options);
  }
  throw UserError(fmt::format("catalogue entry '{}'", name), "there is none of this name", did_you_mean(name, names));
}

} // namespace kiln
