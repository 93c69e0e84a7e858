// Latent attention: a layer of the DeepSeek class, with experts in fp8 with scales of blocks.
//
//   y             = rmsnorm(x)
//   c             = y x w_compress                   queries compressed; latent and rotated part of the key
//   c_q           = rmsnorm(c's queries)
//   cache        <- rmsnorm(latent), rope(key)       one row of 512 + 64 a token, for all heads
//   q             = rope(c_q x w_q)                  heads of 128 + 64, the last 64 rotated
//   q             = q x w_absorb, head by head       to the 512 + 64 of the cache; the last 64 as they are
//   o             = attention(q, cache)              values are the first 512 elements of the keys
//   o             = o x w_value, head by head
//   h             = o x w_o + x
//   y, y8         = rmsnorm(h), and in fp8
//   experts       = router(y), sorted                by sigmoid, with a bias that only the choice sees
//   act           = swiglu(y8 x their weights), then in fp8
//   s             = swiglu(y8 x shared expert), then in fp8, x its w_down, + h
//   x             = weighted sum of act x their w_down, + s
#include "examples/decode_layer/layer.h"
#include "examples/decode_layer/models.h"
#include <cmath>
#include <fmt/format.h>
#include <kiln/gen/spec/attention.h>
#include <kiln/gen/spec/math.h>

using namespace kiln;

namespace {

// Those of attention are the model's; it has 7168, 128 heads, queries compressed to 1536, and 256 experts of 2048, of which 8 are chosen.
constexpr std::int64_t latent = 512, rotated = 64, key = latent + rotated, own = 128, head = own + rotated, value = 128;
constexpr std::int64_t hidden = 512, heads = 4, compressed = 256, experts = 16, top = 4, expert_mlp = 256, block = 128;
const Dim m = dynamic("m", 1, 16);

Expr rms(const Expr& x, std::int64_t columns) { return rsqrt(row_sum(x * x) * (1.0 / static_cast<double>(columns)) + 1e-6); }

KernelSpec norm(const char* name, const char* from, const char* weight, const char* to, std::int64_t columns, Layout layout) {
  const Expr x = input(from, bf16, {m, columns}, layout);
  return KernelSpec(name).output(to, bf16, x * rms(x, columns) * input(weight, bf16, {columns}));
}

KernelSpec product(const char* name, const char* a, const char* weights, const char* to, std::int64_t n, std::int64_t k) {
  return KernelSpec(name).output(to, bf16, matmul_nt(input(a, bf16, {m, k}), input(weights, bf16, {n, k})));
}

// ---- attention

// Rotates the last 64 of `columns`, a multiple of 64; the others stay.
Expr turned(const Expr& x, std::int64_t columns, const Expr& position) {
  const Expr stays = lt(iota({columns}), static_cast<double>(columns - rotated));
  const auto angle = [&](const char* name, double of_others) {
    const Expr table = input(name, bf16, {dynamic("positions", 1), rotated / 2}, Layout::strided);
    return select(stays, of_others, tile(gather(table, position), columns / (rotated / 2)));
  };
  return x * angle("cos_table", 1) + rotate(x, rotated / 2) * angle("sin_table", 0);
}

KernelSpec latent_write() {
  const Expr x = input("kv", bf16, {m, 1, key}, Layout::strided);
  const Expr is_latent = lt(iota({key}), static_cast<double>(latent)), part = select(is_latent, x, 0);
  const Expr normed = x * select(is_latent, rms(part, latent) * input("n_latent", bf16, {key}), 1);
  const Expr written = cast(bf16, turned(normed, key, input("position", i64, {m, 1, 1})));
  return KernelSpec("latent_write")
      .output("cache_out", bf16, scatter(input("cache", bf16, {dynamic("slots", 1), 1, key}), input("slot", i64, {m, 1, 1}), written),
              {.in_place_of = "cache"});
}

KernelSpec rope_q() {
  return KernelSpec("rope_q").output("q_turned", bf16, turned(input("q", bf16, {m, heads, head}), head, input("position", i64, {m, 1, 1})));
}

// A matrix for each head: head h of a token is the pair that expert h takes.
KernelSpec by_head(const char* name, const char* a, const char* weights, const char* to, std::int64_t n, std::int64_t k) {
  const Expr each = matmul_nt(input(a, bf16, {m, heads, k}), input(weights, bf16, {heads, n, k}));
  return KernelSpec(name).output(to, bf16,
                                 by_expert(each, input("order_of_heads", i32, {m, heads}), input("offsets_of_heads", i32, {heads + 1})));
}

KernelSpec latent_attention() {
  const Expr cache = input("cache_pages", bf16, {dynamic("pages_of_all"), page, 1, key});
  const Expr pages = input("pages", i32, {m, pages_of_one}), lengths = input("lengths", i32, {m, 1, 1});
  const Expr scores = attention_scores(input("q_latent", bf16, {m, heads, key}), cache, pages) * (1 / std::sqrt(double{head}));
  return KernelSpec("latent_attention").output("o_latent", bf16, attention(scores, columns(cache, 0, latent), lengths));
}

KernelSpec output_projection() {
  const Expr sum = matmul_nt(input("o_rows", bf16, {m, heads * value}), input("w_o", bf16, {hidden, heads * value}));
  return KernelSpec("output_projection").output("h", bf16, sum + input("x", bf16, {m, hidden}));
}

// ---- experts. Operands in fp8 have a scale for 128 elements of a row, weights one for 128 x 128.

Expr scale_of(const Expr& x, DType fp8) { return max(group_absmax(x, block), 1e-12) / static_cast<double>(max_finite(fp8)); }

KernelSpec norm_quant(DType fp8) {
  const Expr h = input("h", bf16, {m, hidden}), y = h * rms(h, hidden) * input("n_mlp", bf16, {hidden}), scale = scale_of(y, fp8);
  return KernelSpec("norm_quant").output("y", bf16, y).output("y8_scale", f32, scale).output("y8", fp8, y / ungroup(scale, block, hidden));
}

KernelSpec quant(const char* name, const std::string& from, const Shape& rows, DType fp8) {
  const auto with = [&](std::int64_t last) {
    Shape shape = rows;
    return shape.push_back(last), shape;
  };
  const Expr x = input(from, bf16, with(expert_mlp)), scale = scale_of(x, fp8);
  return KernelSpec(name).output(from + "8_scale", f32, scale).output(from + "8", fp8, x / ungroup(scale, block, expert_mlp));
}

KernelSpec router() {
  const Expr scores = sigmoid(matmul_nt(input("y", bf16, {m, hidden}), input("w_router", bf16, {experts, hidden})));
  const Expr chosen = row_top(scores + input("b_router", f32, {experts}), top), weights = pick(scores, chosen);
  return KernelSpec("router")
      .output("weights", f32, weights / row_sum(weights) * 2.5)
      .output("experts", i32, chosen)
      .output("order", i32, expert_order(chosen, experts))
      .output("offsets", i32, expert_offsets(chosen, experts));
}

// rows [..., k] in fp8 with weights [n, k], or a matrix of that size an expert.
Expr scaled_product(const std::string& a, const Shape& rows, const std::string& weights, std::int64_t n, std::int64_t k, bool of_experts,
                    DType fp8) {
  const auto with = [](Shape shape, std::initializer_list<std::int64_t> last) {
    for (const std::int64_t size : last) shape.push_back(size);
    return shape;
  };
  const Shape matrices = of_experts ? Shape{experts} : Shape{};
  return matmul_nt_scaled(input(a, fp8, with(rows, {k})), input(weights, fp8, with(matrices, {n, k})),
                          input(a + "_scale", f32, with(rows, {k / block})),
                          input("w_" + weights + "_scale", f32, with(matrices, {n / block, k / block})));
}

Expr by_order(const Expr& each) { return by_expert(each, input("order", i32, {m, top}), input("offsets", i32, {experts + 1})); }

KernelSpec gate_up(const char* name, const char* to, const char* weights, bool of_experts, DType fp8) {
  Expr both = scaled_product("y8", {m}, weights, 2 * expert_mlp, hidden, of_experts, fp8);
  if (of_experts) both = by_order(both);
  return KernelSpec(name).output(to, bf16, silu(columns(both, 0, expert_mlp)) * columns(both, expert_mlp, expert_mlp));
}

KernelSpec shared_down(DType fp8) {
  const Expr sum = scaled_product("shared8", {m}, "s_down", hidden, expert_mlp, false, fp8);
  return KernelSpec("shared_down").output("s", bf16, sum + input("h", bf16, {m, hidden}));
}

KernelSpec expert_down(DType fp8) {
  const Expr each = scaled_product("act8", {m, top}, "e_down", hidden, expert_mlp, true, fp8);
  const Expr sum =
      sum_of_experts(each, input("order", i32, {m, top}), input("offsets", i32, {experts + 1}), input("weights", f32, {m, top}));
  return KernelSpec("expert_down").output("x_out", bf16, sum + input("s", bf16, {m, hidden}));
}

// ---- the layer

// The order of the pairs of tokens and heads: as if every token had chosen the experts 0, 1, ... It changes with the number of tokens only.
void set_heads(Layer& layer) {
  Tensor all(i32, {tokens, heads});
  for (std::int64_t i = 0; i < all.size(); ++i) all.set_bits(i, static_cast<std::uint64_t>(i % heads));
  const Expr chosen = input("all", i32, {m, heads});
  const KernelSpec sort = KernelSpec("sort_heads")
                              .output("order_of_heads", i32, expert_order(chosen, heads))
                              .output("offsets_of_heads", i32, expert_offsets(chosen, heads));
  Inputs inputs;
  inputs.tensors.emplace("all", all);
  for (const auto& [name, tensor] : evaluate(sort, inputs)) layer.set(name, tensor);
}

// Queries reach the cache's last 64 elements unchanged.
void set_absorbed(Layer& layer, const KernelSpec& absorb) {
  layer.fill(absorb);
  layer.view("w_absorb", "w_absorb", [](Tensor w) {
    for (std::int64_t i = 0; i < w.size(); ++i) {
      const std::int64_t row = i / head % key, column = i % head;
      if (row >= latent || column >= own) w.set(i, row >= latent && column == row - latent + own ? 1.0F : 0.0F);
    }
    return w;
  });
}

void run_attention(Layer& layer) {
  const KernelSpec compress = product("compress", "y", "w_compress", "c", compressed + key, hidden);
  const KernelSpec expand = product("queries", "c_q_normed", "w_q", "q_rows", heads * head, compressed);
  const KernelSpec absorb = by_head("absorb", "q_turned", "w_absorb", "q_latent", key, head);
  const KernelSpec first = norm("rmsnorm", "x", "n_attention", "y", hidden, Layout::contiguous);
  const KernelSpec of_queries = norm("norm_of_queries", "c_q", "n_queries", "c_q_normed", compressed, Layout::strided);
  const KernelSpec values = by_head("values", "o_latent", "w_value", "o", value, latent);
  set_absorbed(layer, absorb);
  for (const KernelSpec& spec : {first, compress, of_queries, expand, latent_write(), values, output_projection()}) layer.fill(spec);
  layer.run(first);
  layer.run(compress);
  layer.view("c", "c_q", [](const Tensor& c) { return columns_in(c, 0, {tokens, compressed}); });
  layer.view("c", "kv", [](const Tensor& c) { return columns_in(c, compressed, {tokens, 1, key}); });
  layer.run(of_queries);
  layer.run(latent_write());
  layer.view("cache_out", "cache_pages", [](const Tensor& cache) { return reshaped(cache, {pages_of_all, page, 1, key}); });
  layer.run(expand);
  layer.view("q_rows", "q", [](const Tensor& q) { return reshaped(q, {tokens, heads, head}); });
  layer.run(rope_q());
  layer.run(absorb);
  layer.run(latent_attention());
  layer.run(values);
  layer.view("o", "o_rows", [](const Tensor& o) { return reshaped(o, {tokens, heads * value}); });
  layer.run(output_projection());
}

void run_experts(Layer& layer, DType fp8) {
  const std::vector<KernelSpec> specs = {norm_quant(fp8),
                                         router(),
                                         gate_up("shared_gate_up", "shared", "s_gate_up", false, fp8),
                                         quant("shared_quant", "shared", {m}, fp8),
                                         shared_down(fp8),
                                         gate_up("expert_gate_up", "act", "e_gate_up", true, fp8),
                                         quant("expert_quant", "act", {m, top}, fp8),
                                         expert_down(fp8)};
  for (const KernelSpec& spec : specs) {
    layer.fill(spec); // what no launch before has made
    layer.run(spec);
  }
}

} // namespace

bool run_deepseek_class(const Target& to) {
  fmt::print("{}, latent attention, {} of {} experts and a shared one: {} tokens, hidden {}, {} heads\n", to.arch(), top, experts, tokens,
             hidden, heads);
  Layer layer(to, {{"m", tokens}, {"positions", positions}, {"slots", slots}, {"pages_of_all", pages_of_all}});
  set_places(layer, rotated / 2);
  set_heads(layer);
  run_attention(layer);
  run_experts(layer, to.fp8_e4m3());
  return layer.close("h", 0.01) && layer.close("x_out", 0.05); // a number of fp8 that rounds the other way differs by 1/16
}
