// The catalogue: the spec of each entry, and its line in the registry.
#include "gen/catalog/catalog.h"
#include "gen/error.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include "gen/spec/names.h"
#include <cmath>
#include <fmt/format.h>
#include <tuple>
#include <vector>

namespace kiln {
namespace {

constexpr double norm_epsilon = 1e-6;  // of RMS and layer norm: Llama's rms_norm_eps
constexpr double least_absmax = 1e-12; // keeps the scale of an all-zero row above zero

Shape activation_shape(const CatalogOptions& options) { return {dynamic("rows"), options.cols}; }
Expr activation(const char* name, const CatalogOptions& options) { return input(name, options.dtype, activation_shape(options)); }
// One value a column: norm weights, biases.
Expr column_vector(const char* name, const CatalogOptions& options) { return input(name, options.dtype, {options.cols}); }
// One f32 for the whole tensor, in device memory, as quantisation toolkits leave it.
Expr tensor_scale() { return input("scale", f32, {}); }
// The scale that maps the largest magnitude to the largest fp8 number.
Expr scale_of(const Expr& absmax, DType fp8) { return max(absmax, least_absmax) / max_finite(fp8); }

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

KernelSpec softmax(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr e = exp(x - row_max(x));
  return KernelSpec("softmax").output("y", options.dtype, e / row_sum(e));
}

// Of the next token: logits over the vocabulary.
KernelSpec softmax_temperature(const CatalogOptions& options) {
  const Expr x = activation("x", options) / input("temperature", f32, {dynamic("rows"), 1});
  const Expr e = exp(x - row_max(x));
  return KernelSpec("softmax_temperature").output("y", f32, e / row_sum(e));
}

KernelSpec argmax_rows(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  return KernelSpec("argmax_rows").output("column", i32, row_argmax(x)).output("value", f32, row_max(x));
}

// ---- rows by index: what a decode step reads and writes by token, position and slot

KernelSpec embedding(const CatalogOptions& options) {
  const Expr table = input("table", options.dtype, {dynamic("vocabulary", 1), options.cols});
  return KernelSpec("embedding").output("y", options.dtype, gather(table, input("ids", options.index, {dynamic("rows"), 1})));
}

// Rows are tokens; heads of a token may lie in a wider row, that of q, k and v together.
Expr heads(const char* name, const CatalogOptions& options) {
  return input(name, options.dtype, {dynamic("rows"), options.heads, options.cols}, Layout::strided);
}
Expr of_token(const char* name, const CatalogOptions& options) { return input(name, options.index, {dynamic("rows"), 1, 1}); }

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

// ---- activations and sums, element by element

KernelSpec swiglu_quant(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("swiglu_quant").output("q", options.fp8, silu(gate) * up / tensor_scale());
}

KernelSpec gelu_mul(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("gelu_mul").output("y", options.dtype, gelu(gate) * up);
}

KernelSpec silu_mul(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("silu_mul").output("y", options.dtype, silu(gate) * up);
}

KernelSpec add_bias_gelu(const CatalogOptions& options) {
  const Expr x = activation("x", options), bias = column_vector("bias", options);
  return KernelSpec("add_bias_gelu").output("y", options.dtype, gelu_tanh(x + bias));
}

KernelSpec scaled_add(const CatalogOptions& options) {
  const Expr x = activation("x", options), y = activation("y", options);
  return KernelSpec("scaled_add").output("sum", options.dtype, x + scalar("alpha") * y);
}

// ---- to fp8 and back, with one scale a row or a group

KernelSpec per_token_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(row_absmax(x), options.fp8);
  return KernelSpec("per_token_quant").output("scale", f32, scale).output("q", options.fp8, x / scale);
}

KernelSpec group_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(group_absmax(x, options.group), options.fp8);
  const Expr of_element = ungroup(scale, options.group, options.cols);
  return KernelSpec("group_quant").output("scale", f32, scale).output("q", options.fp8, x / of_element);
}

KernelSpec dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options)), scale = input("scale", f32, {dynamic("rows"), 1});
  return KernelSpec("dequant").output("y", options.dtype, q * scale);
}

KernelSpec group_dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options));
  const Expr scale = input("scale", f32, {dynamic("rows"), group_count(options.cols, options.group)});
  return KernelSpec("group_dequant").output("y", options.dtype, q * ungroup(scale, options.group, options.cols));
}

KernelSpec cast_quant(const CatalogOptions& options) { return KernelSpec("cast_quant").output("q", options.fp8, activation("x", options)); }

// ---- skinny products, the projections of a language model while it decodes

Dim rows_of(const CatalogOptions& options) { return dynamic("m", 1, options.m); }
Expr matrix_a(const CatalogOptions& options) { return input("a", options.dtype, {rows_of(options), options.k}); }
Layout layout_of(const CatalogOptions& options) { return options.preshuffled ? Layout::preshuffled : Layout::contiguous; }
Expr matrix_b(const CatalogOptions& options, std::int64_t n) { return input("b", options.dtype, {n, options.k}, layout_of(options)); }
bool quantised(const CatalogOptions& options) { return is_fp8(options.dtype) || options.dtype == i8; }
// What a product of quantised numbers is stored as: f16. Others keep their type.
DType result_type(const CatalogOptions& options) { return quantised(options) ? f16 : options.dtype; }

// Quantised operands have one scale a row of a and one a row of b; others none.
Expr scaled_product(const CatalogOptions& options) {
  const Expr product = matmul_nt(matrix_a(options), matrix_b(options, options.n));
  if (!quantised(options)) return product;
  return product * input("a_scale", f32, {rows_of(options), 1}) * input("b_scale", f32, {options.n});
}

KernelSpec gemm(const CatalogOptions& options) { return KernelSpec("gemm").output("c", result_type(options), scaled_product(options)); }

KernelSpec gemm_bias(const CatalogOptions& options) {
  const DType type = result_type(options);
  return KernelSpec("gemm_bias").output("c", type, scaled_product(options) + input("bias", type, {options.n}));
}

KernelSpec gemm_residual(const CatalogOptions& options) {
  const DType type = result_type(options);
  const Expr residual = input("residual", type, {rows_of(options), options.n});
  return KernelSpec("gemm_residual")
      .output("c", type, scaled_product(options) + residual, {.in_place_of = options.in_place ? "residual" : ""});
}

KernelSpec gemm_swiglu_quant(const CatalogOptions& options) {
  const Expr both = matmul_nt(matrix_a(options), matrix_b(options, 2 * options.n));
  const auto half = [&](std::int64_t first) {
    const Expr part = columns(both, first, options.n);
    // One scale for a and one for b, so that gate and partner share it.
    return quantised(options) ? part * (input("a_scale", f32, {}) * input("b_scale", f32, {})) : part;
  };
  return KernelSpec("gemm_swiglu_quant").output("q", options.fp8, silu(half(0)) * half(options.n) / tensor_scale());
}

void require_16_bit_a(const char* subject, const CatalogOptions& options, const char* what) {
  if (options.dtype != f16 && options.dtype != bf16)
    throw UserError(subject, fmt::format("dtype is {}", to_string(options.dtype)), fmt::format("use f16 or bf16, the type of a{}", what));
}

KernelSpec gemm_w8a16(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_w8a16'", options, "; b is fp8");
  const Expr b = input("b", options.fp8, {options.n, options.k}, layout_of(options));
  return KernelSpec("gemm_w8a16").output("c", options.dtype, matmul_nt(matrix_a(options), b) * input("b_scale", f32, {options.n}));
}

KernelSpec gemm_w4a16(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_w4a16'", options, " and of the scales; b has 4-bit numbers");
  if (options.k % 2 || options.group < 1)
    throw UserError("catalogue entry 'gemm_w4a16'", fmt::format("k is {} and group {}", options.k, options.group),
                    "use an even k and a multiple of 32");
  const Expr b = input("b", u8, {options.n, options.k / 2}, layout_of(options));
  const std::int64_t groups = group_count(options.k, options.group);
  const Expr scale = input("scale", options.dtype, {options.n, groups}), zero = input("zero", u8, {options.n, groups});
  return KernelSpec("gemm_w4a16").output("c", options.dtype, matmul_nt_w4(matrix_a(options), b, scale, zero, options.group));
}

// Operands of 8 bits: of `dtype` if that has as many, else of the quantised type, with results of `dtype`.
KernelSpec gemm_block_scaled(const CatalogOptions& options) {
  const DType type = quantised(options) ? options.dtype : options.fp8;
  const std::int64_t groups = group_count(options.k, scale_block);
  const Expr a = input("a", type, {rows_of(options), options.k}), b = input("b", type, {options.n, options.k}, layout_of(options));
  const Expr a_scale = input("a_scale", f32, {rows_of(options), groups});
  const Expr b_scale = input("b_scale", f32, {group_count(options.n, scale_block), groups});
  return KernelSpec("gemm_block_scaled").output("c", result_type(options), matmul_nt_scaled(a, b, a_scale, b_scale));
}

// ---- the registry: one line an entry

// ---- attention of one query a sequence, causal by the lengths alone

// A cache of 8 bits has a scale for its keys and one for its values, each one for the tensor.
KernelSpec attention_of(const char* kernel, const CatalogOptions& options, const Expr& q, const Expr& products, const Expr& v,
                        const Expr& lengths) {
  const bool scaled = size_bytes(v.dtype()) == 1;
  const double scale = 1 / std::sqrt(static_cast<double>(options.d));
  const Expr scores = scaled ? products * (input("k_scale", f32, {}) * scale) : products * scale;
  const Expr result = attention(scores, v, lengths);
  return KernelSpec(kernel).output("o", q.dtype(), scaled ? result * input("v_scale", f32, {}) : result);
}

struct AttentionInputs {
  Dim sequences = dynamic("sequences");
  Expr q, lengths;
  DType cache;
  explicit AttentionInputs(const CatalogOptions& options)
      : q(input("q", options.dtype, {sequences, options.heads, options.d})), lengths(input("lengths", i32, {sequences, 1, 1})),
        cache(options.cache == f32 ? options.dtype : options.cache) {}
};

KernelSpec attention_decode(const CatalogOptions& options) {
  const AttentionInputs in(options);
  const auto tensor = [&](const char* name) { return input(name, in.cache, {in.sequences, options.length, options.kv_heads, options.d}); };
  return attention_of("attention_decode", options, in.q, attention_scores(in.q, tensor("k")), tensor("v"), in.lengths);
}

KernelSpec attention_paged(const CatalogOptions& options) {
  const AttentionInputs in(options);
  const auto tensor = [&](const char* name) {
    return input(name, in.cache, {dynamic("pages_of_all"), options.page, options.kv_heads, options.d});
  };
  const Expr pages = input("pages", i32, {in.sequences, (options.length + options.page - 1) / options.page});
  return attention_of("attention_paged", options, in.q, attention_scores(in.q, tensor("k"), pages), tensor("v"), in.lengths);
}

constexpr CatalogEntry entries[] = {
    {"add_rmsnorm_quant", "residual add, RMS norm, fp8 with a given scale (or dynamic_scale)", add_rmsnorm_quant},
    {"add_rmsnorm_dynamic_quant", "residual add, RMS norm, fp8 with one scale a token", add_rmsnorm_dynamic_quant},
    {"rmsnorm", "RMS norm with a weight a column", rmsnorm},
    {"layernorm", "layer norm with weight and bias a column", layernorm},
    {"softmax", "softmax of each row", softmax},
    {"softmax_temperature", "softmax of each row over its temperature, f32", softmax_temperature},
    {"argmax_rows", "the column of the largest element of each row, the lowest of those alike, and its value", argmax_rows},
    {"embedding", "rows of a table by id; zeros for a negative id", embedding},
    {"rope", "rotary embedding of each head by position, neox or interleaved, optional norm of heads", rope, false, true},
    {"rope_kv_write", "rope of k, and k and v into a paged cache by slot; fp8 with given scales as an option", rope_kv_write, false, true},
    {"swiglu_quant", "silu(gate) * up, fp8 with a given scale", swiglu_quant},
    {"gelu_mul", "gelu(gate) * up, gelu by erf", gelu_mul},
    {"silu_mul", "silu(gate) * up", silu_mul},
    {"add_bias_gelu", "gelu(x + bias), gelu by tanh", add_bias_gelu},
    {"per_token_quant", "fp8 with one scale a row", per_token_quant},
    {"group_quant", "fp8 with one scale for every `group` columns of a row", group_quant},
    {"dequant", "fp8 times one scale a row", dequant},
    {"group_dequant", "fp8 times one scale for every `group` columns of a row", group_dequant},
    {"scaled_add", "x + alpha * y, alpha given at launch", scaled_add},
    {"cast", "rounding to fp8 without a scale", cast_quant},
    {"gemm", "skinny a x b^T; fp8 and i8 with a scale a row of each", gemm, true},
    {"gemm_bias", "gemm + bias", gemm_bias, true},
    {"gemm_residual", "gemm + residual", gemm_residual, true},
    {"gemm_swiglu_quant", "silu(gate) * up of one product's halves, fp8 with a given scale", gemm_swiglu_quant, true},
    {"gemm_w8a16", "f16 or bf16 a, fp8 b with a scale a row", gemm_w8a16, true},
    {"gemm_w4a16", "f16 or bf16 a, 4-bit b with a scale and a zero point for every `group` elements of k", gemm_w4a16, true},
    {"attention_decode", "softmax(q x k) x v of one query a sequence, the cache contiguous; 8-bit caches with a scale of k and one of v",
     attention_decode, false, false, true},
    {"attention_paged", "the same with a paged cache, and a table of the pages of each sequence", attention_paged, false, false, true},
    {"gemm_block_scaled", "fp8 (or i8) with scales of 1x128 of a and 128x128 of b", gemm_block_scaled, true},
};

void require_options(const CatalogEntry& entry, const CatalogOptions& options) {
  const auto refuse = [&](std::string fact, std::string remedy) {
    throw UserError(fmt::format("catalogue entry '{}'", entry.name), std::move(fact), std::move(remedy));
  };
  if (entry.is_gemm) {
    for (const auto& [what, size, most] :
         {std::tuple{"m", options.m, 64}, std::tuple{"n", options.n, 1 << 24}, std::tuple{"k", options.k, 1 << 24}})
      if (size < 1 || size > most) refuse(fmt::format("{} is {}", what, size), fmt::format("use 1 to {}", most));
    if (!is_float(options.dtype) && options.dtype != i8)
      refuse(fmt::format("dtype is {}", to_string(options.dtype)), "use f16, bf16, an fp8 or i8");
    return;
  }
  if (entry.is_attention) {
    for (const auto& [what, size, most] :
         {std::tuple{"heads", options.heads, std::int64_t{1024}}, std::tuple{"kv_heads", options.kv_heads, std::int64_t{1024}},
          std::tuple{"d", options.d, std::int64_t{256}}, std::tuple{"page", options.page, std::int64_t{65536}},
          std::tuple{"length", options.length, max_dim_size - 65536}})
      if (size < 1 || size > most) refuse(fmt::format("{} is {}", what, size), fmt::format("use 1 to {}", most));
    return;
  }
  if (options.cols < 1 || options.cols > max_dim_size)
    refuse(fmt::format("cols is {}", options.cols), fmt::format("use 1 to {}", max_dim_size));
  if (options.dtype != f32 && options.dtype != f16 && options.dtype != bf16)
    refuse(fmt::format("dtype is {}", to_string(options.dtype)), "use f32, f16 or bf16");
  if (options.index != i32 && options.index != i64) refuse(fmt::format("index is {}", to_string(options.index)), "use i32 or i64");
  if (entry.is_rope && (options.heads < 1 || options.heads > max_dim_size))
    refuse(fmt::format("heads is {}", options.heads), fmt::format("use 1 to {}", max_dim_size));
  if (entry.is_rope && options.cols % 2)
    refuse(fmt::format("cols is {}", options.cols), "use an even number: rotary embedding turns pairs of columns");
  if (!is_fp8(options.fp8)) refuse(fmt::format("fp8 is {}", to_string(options.fp8)), "use e4m3fn, e4m3fnuz, e5m2 or e5m2fnuz");
}

} // namespace

std::span<const CatalogEntry> catalog() { return entries; }

KernelSpec catalog_spec(std::string_view name, const CatalogOptions& options) {
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : entries) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    require_options(entry, options);
    return entry.build(options);
  }
  throw UserError(fmt::format("catalogue entry '{}'", name), "there is none of this name", did_you_mean(name, names));
}

} // namespace kiln
