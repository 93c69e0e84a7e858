// Grouped queries: a layer of the Llama-3 class, dense, and one of the gpt-oss class, a mixture of experts in MXFP4.
#include "examples/decode_layer/layer.h"
#include "examples/decode_layer/models.h"
#include <cmath>
#include <fmt/format.h>
#include <kiln/gen/spec/attention.h>
#include <kiln/gen/spec/math.h>
#include <limits>

using namespace kiln;

namespace {

// Models have 8 to 32 times these.
constexpr std::int64_t hidden = 512, heads = 8, kv_heads = 2, d = 64, qkv_columns = (heads + 2 * kv_heads) * d, mlp = 1024;
constexpr std::int64_t experts = 16, top = 4, expert_mlp = 256, window = 24;
const Dim m = dynamic("m", 1, 16);

// ---- the kernels

KernelSpec norm(const char* from, const char* weight) {
  const Expr x = input(from, bf16, {m, hidden});
  return KernelSpec("rmsnorm").output("y", bf16, x * rsqrt(row_mean(x * x) + 1e-6) * input(weight, bf16, {hidden}));
}

Expr projected(const char* a, const char* weights, std::int64_t n, std::int64_t k) {
  return matmul_nt(input(a, bf16, {m, k}), input(weights, bf16, {n, k}));
}

KernelSpec qkv_projection(bool biased) {
  const Expr product = projected("y", "w_qkv", qkv_columns, hidden);
  return KernelSpec("qkv_projection").output("qkv", bf16, biased ? product + input("b_qkv", bf16, {qkv_columns}) : product);
}

// Heads of a token lie in its row of qkv, behind those of the others.
Expr heads_of(const char* name, std::int64_t count) { return input(name, bf16, {m, count, d}, Layout::strided); }

Expr turned(const Expr& x) {
  const Expr position = input("position", i64, {m, 1, 1});
  const auto angle = [&](const char* name) {
    return tile(gather(input(name, bf16, {dynamic("positions", 1), d / 2}, Layout::strided), position), 2);
  };
  return x * angle("cos_table") + rotate(x, d / 2) * angle("sin_table");
}

KernelSpec rope_q() { return KernelSpec("rope").output("q_turned", bf16, turned(heads_of("q", heads))); }

KernelSpec rope_kv_write() {
  const Expr slot = input("slot", i64, {m, 1, 1});
  const auto into = [&](const char* name, const Expr& value) {
    return scatter(input(name, bf16, {dynamic("slots", 1), kv_heads, d}), slot, cast(bf16, value));
  };
  return KernelSpec("rope_kv_write")
      .output("k_out", bf16, into("k_cache", turned(heads_of("k", kv_heads))), {.in_place_of = "k_cache"})
      .output("v_out", bf16, into("v_cache", heads_of("v", kv_heads)), {.in_place_of = "v_cache"});
}

KernelSpec attention_of_cache(bool with_window_and_sinks) {
  const auto cache = [](const char* name) { return input(name, bf16, {dynamic("pages_of_all"), page, kv_heads, d}); };
  const Expr pages = input("pages", i32, {m, pages_of_one}), lengths = input("lengths", i32, {m, 1, 1});
  const Expr scores = attention_scores(input("q_turned", bf16, {m, heads, d}), cache("k_pages"), pages) * (1 / std::sqrt(double{d}));
  if (!with_window_and_sinks) return KernelSpec("paged_attention").output("o", bf16, attention(scores, cache("v_pages"), lengths));
  const Expr near = gt(iota({positions}), lengths - (window + 1.0));
  const Expr seen = select(near, scores, -std::numeric_limits<double>::infinity());
  const Expr kept = sigmoid(log_sum_exp(seen, lengths) - input("sink", f32, {heads, 1})); // the share that the sink leaves
  return KernelSpec("paged_attention").output("o", bf16, attention(seen, cache("v_pages"), lengths) * kept);
}

KernelSpec output_projection(bool biased) {
  Expr sum = projected("o_rows", "w_o", hidden, heads * d) + input("x", bf16, {m, hidden});
  if (biased) sum = sum + input("b_o", bf16, {hidden});
  return KernelSpec("output_projection").output("h", bf16, sum);
}

KernelSpec gate_up_projection() { // the gate's rows of the weights first, then those of up
  const Expr both = projected("y", "w_gate_up", 2 * mlp, hidden);
  return KernelSpec("gate_up_projection").output("act", bf16, silu(columns(both, 0, mlp)) * columns(both, mlp, mlp));
}

KernelSpec down_projection() {
  return KernelSpec("down_projection").output("x_out", bf16, projected("act", "w_down", hidden, mlp) + input("h", bf16, {m, hidden}));
}

// ---- the experts

KernelSpec router() {
  const Expr logits = projected("y", "w_router", experts, hidden) + input("b_router", f32, {experts});
  const Expr chosen = row_top(logits, top), e = exp(pick(logits, chosen) - row_max(pick(logits, chosen)));
  return KernelSpec("router")
      .output("weights", f32, e / row_sum(e))
      .output("experts", i32, chosen)
      .output("order", i32, expert_order(chosen, experts))
      .output("offsets", i32, expert_offsets(chosen, experts));
}

Expr order() { return input("order", i32, {m, top}); }
Expr offsets() { return input("offsets", i32, {experts + 1}); }
Expr of_all_experts(const Expr& a, const std::string& weights, std::int64_t n, std::int64_t k) { // MXFP4
  return matmul_nt_mx(a, input(weights, e2m1, {experts, n, k}), input(weights + "_scale", e8m0, {experts, n, k / 32}));
}

KernelSpec expert_gate_up() { // gpt-oss's SwiGLU: limited to 7, with a slope of 1.702, and one more than up
  const Expr y = input("y", bf16, {m, hidden});
  const Expr both = by_expert(of_all_experts(y, "e_gate_up", 2 * expert_mlp, hidden), order(), offsets());
  const Expr gate = min(columns(both, 0, expert_mlp), 7), up = clamp(columns(both, expert_mlp, expert_mlp), -7, 7);
  return KernelSpec("expert_gate_up").output("act", bf16, gate * sigmoid(gate * 1.702) * (up + 1));
}

KernelSpec expert_down() {
  const Expr product = of_all_experts(input("act", bf16, {m, top, expert_mlp}), "e_down", hidden, expert_mlp);
  const Expr sum = sum_of_experts(product, order(), offsets(), input("weights", f32, {m, top}));
  return KernelSpec("expert_down").output("x_out", bf16, sum + input("h", bf16, {m, hidden}));
}

// From qkv to the rows of o.
void run_attention(Layer& layer, bool like_gpt_oss) {
  layer.view("qkv", "q", [](const Tensor& qkv) { return columns_in(qkv, 0, {tokens, heads, d}); });
  layer.view("qkv", "k", [](const Tensor& qkv) { return columns_in(qkv, heads * d, {tokens, kv_heads, d}); });
  layer.view("qkv", "v", [](const Tensor& qkv) { return columns_in(qkv, (heads + kv_heads) * d, {tokens, kv_heads, d}); });
  layer.run(rope_q());
  layer.run(rope_kv_write());
  for (const char* name : {"k", "v"})
    layer.view(fmt::format("{}_out", name), fmt::format("{}_pages", name),
               [](const Tensor& cache) { return reshaped(cache, {pages_of_all, page, kv_heads, d}); });
  layer.run(attention_of_cache(like_gpt_oss));
  layer.view("o", "o_rows", [](const Tensor& o) { return reshaped(o, {tokens, heads * d}); });
}

void run_launches(Layer& layer, bool mixture) {
  set_places(layer, d / 2);
  std::vector<KernelSpec> specs = {norm("x", "n_attention"), norm("h", "n_mlp"),          qkv_projection(mixture),
                                   rope_kv_write(),          attention_of_cache(mixture), output_projection(mixture)};
  const std::vector<KernelSpec> rest =
      mixture ? std::vector{router(), expert_gate_up(), expert_down()} : std::vector{gate_up_projection(), down_projection()};
  specs.insert(specs.end(), rest.begin(), rest.end());
  for (const KernelSpec& spec : specs) layer.fill(spec);
  layer.run(norm("x", "n_attention"));
  layer.run(qkv_projection(mixture));
  run_attention(layer, mixture);
  layer.run(output_projection(mixture));
  layer.run(norm("h", "n_mlp"));
  for (const KernelSpec& spec : rest) layer.run(spec);
}

bool run_layer(const Target& to, bool mixture) {
  fmt::print("{}, {}: {} tokens, hidden {}, {} heads of {}, {} of the cache\n", to.arch(),
             mixture ? fmt::format("{} of {} experts", top, experts) : "dense", tokens, hidden, heads, d, kv_heads);
  Layer layer(to, {{"m", tokens}, {"positions", positions}, {"slots", slots}, {"pages_of_all", pages_of_all}});
  run_launches(layer, mixture);
  return layer.close("h", 0.01) && layer.close("x_out", 0.02);
}

// ---- norms folded into the products around them: fp8 weights

constexpr std::int64_t group = 32;

// What a product with a residual leaves: the stream, and the sums of squares from which the next product norms it.
KernelSpec with_squares(KernelSpec spec, const std::string& stream, const std::string& squares, const Expr& sum) {
  const Expr h = cast(bf16, sum);
  return std::move(spec.output(stream, bf16, h).output(squares, f32, group_sum(h * h, group)));
}

KernelSpec embedding_squares() { // of the first layer alone
  const Expr x = input("x", bf16, {m, hidden});
  return KernelSpec("embedding_squares").output("x_squares", f32, group_sum(x * x, group));
}

Expr normed(const Target& to, const char* stream, const char* squares, const char* weight, const std::string& weights, std::int64_t n) {
  const Expr product =
      matmul_nt_normed(input(stream, bf16, {m, hidden}), input(weights, to.fp8_e4m3(), {n, hidden}), input(weight, bf16, {hidden}),
                       input(squares, f32, {m, hidden / group}), input("q_scale", f32, {}), 1e-6F);
  return product * input("weights_scale", f32, {});
}

KernelSpec norm_qkv(const Target& to) {
  return KernelSpec("norm_qkv").output("qkv", bf16, normed(to, "x", "x_squares", "n_attention", "w_qkv_fp8", qkv_columns));
}
KernelSpec norm_gate_up(const Target& to) {
  const auto half = [&](const char* weights) { return normed(to, "h", "h_squares", "n_mlp", weights, mlp); };
  return KernelSpec("norm_gate_up").output("act", bf16, silu(half("w_gate_fp8")) * half("w_up_fp8"));
}
KernelSpec output_with_squares() {
  return with_squares(KernelSpec("output_with_squares"), "h", "h_squares",
                      projected("o_rows", "w_o", hidden, heads * d) + input("x", bf16, {m, hidden}));
}
KernelSpec down_with_squares() {
  return with_squares(KernelSpec("down_with_squares"), "x_out", "x_out_squares",
                      projected("act", "w_down", hidden, mlp) + input("h", bf16, {m, hidden}));
}

} // namespace

bool run_folded_llama_class(const Target& to) {
  fmt::print("{}, dense, norms folded into products of fp8: {} tokens, hidden {}\n", to.arch(), tokens, hidden);
  Layer layer(to, {{"m", tokens}, {"positions", positions}, {"slots", slots}, {"pages_of_all", pages_of_all}});
  set_places(layer, d / 2);
  Tensor scale(f32, {});
  scale.set(0, 0.25F);
  layer.set("q_scale", scale), layer.set("weights_scale", scale);
  const std::vector<KernelSpec> specs = {embedding_squares(),   norm_qkv(to),     rope_kv_write(),    attention_of_cache(false),
                                         output_with_squares(), norm_gate_up(to), down_with_squares()};
  for (const KernelSpec& spec : specs) layer.fill(spec);
  layer.run(embedding_squares());
  layer.run(norm_qkv(to));
  run_attention(layer, false);
  layer.run(output_with_squares());
  layer.run(norm_gate_up(to));
  layer.run(down_with_squares());
  return layer.close("h", 0.02) && layer.close("x_out", 0.04);
}

void run_attention_layer(Layer& layer) { run_launches(layer, false); }
bool run_llama_class(const Target& to) { return run_layer(to, false); }
bool run_gpt_oss_class(const Target& to) { return run_layer(to, true); }
