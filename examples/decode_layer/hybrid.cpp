// Hybrid: four layers of the Qwen3-Next class, three of them recurrent and one with attention. A recurrent layer has nine launches:
//
//   y         = rmsnorm(x)
//   in        = y x w_in                    q, k and v of the convolution, the gate z, and a and b of each head
//   mixed     = conv1d_update(q k v)        the window of the sequence's slot moves in place
//   o         = gated_delta_update(mixed)   norms of q and k, both gates, and the state of the slot in place
//   o_normed  = rmsnorm(o) x silu(z)
//   h         = o_normed x w_o + x
//   y         = rmsnorm(h)
//   act       = swiglu(y x w_gate_up)
//   x         = act x w_down + h
//
// Without states by slot a launch before the third and one before the fourth take the states out of their slots, and two more put them
// back: 13 launches, and each state is moved three times instead of once.
#include "examples/decode_layer/layer.h"
#include "examples/decode_layer/models.h"
#include <cmath>
#include <fmt/format.h>
#include <kiln/gen/spec/math.h>

using namespace kiln;

namespace {

// Models have 4 to 8 times these.
constexpr std::int64_t hidden = 512, key_heads = 2, heads = 4, head = 64, mlp = 1024, window = 4, states = 7;
constexpr std::int64_t keys = key_heads * head, values = heads * head, mixed_columns = 2 * keys + values;
constexpr std::int64_t in_columns = mixed_columns + values + 2 * heads, recurrent_layers = 3;
const Dim m = dynamic("m", 1, 16), state_slots = dynamic("state_slots", 1);

Expr rows(const char* name, std::int64_t columns) { return input(name, bf16, {m, columns}, Layout::strided); }
Expr slot_of(std::int64_t rank) {
  Shape shape(static_cast<std::size_t>(rank), 1);
  shape[0] = m;
  return input(fmt::format("state_slot_{}", rank), i64, shape);
}

KernelSpec norm(const char* from, const char* weight) {
  const Expr x = input(from, bf16, {m, hidden});
  return KernelSpec("rmsnorm").output("y", bf16, x * rsqrt(row_mean(x * x) + 1e-6) * input(weight, bf16, {hidden}));
}

Expr projected(const char* a, const char* weights, std::int64_t n, std::int64_t k) {
  return matmul_nt(input(a, bf16, {m, k}), input(weights, bf16, {n, k}));
}

KernelSpec convolution(const std::string& state_name) {
  const Expr state = input(state_name, bf16, {state_slots, window - 1, mixed_columns}), slot = slot_of(3), old = gather(state, slot);
  const Expr x = rows("qkv", mixed_columns), weight = input("w_conv", bf16, {1, window, mixed_columns});
  std::vector<Expr> moved;
  Expr sum = x * unstack(weight, window - 1);
  for (std::int64_t i = 0; i < window - 1; ++i) {
    sum = sum + unstack(old, i) * unstack(weight, i);
    if (i > 0) moved.push_back(cast(bf16, unstack(old, i)));
  }
  moved.push_back(cast(bf16, x));
  return KernelSpec("conv1d_update")
      .output(state_name + "_out", bf16, scatter(state, slot, stack(moved)), {.in_place_of = state_name})
      .output("mixed", bf16, silu(sum));
}

KernelSpec delta_rule(const std::string& state_name) {
  constexpr std::int64_t shared = heads / key_heads;
  const Expr state = input(state_name, f32, {state_slots, key_heads, shared, head, head}), slot = slot_of(5);
  const auto of_group = [](const char* name) { return input(name, bf16, {m, key_heads, 1, 1, head}, Layout::strided); };
  const auto of_head = [](const char* name) { return input(name, bf16, {m, key_heads, shared, 1, 1}, Layout::strided); };
  const Expr q = of_group("q_mixed"), k = of_group("k_mixed"), v = input("v_mixed", bf16, {m, key_heads, shared, head, 1}, Layout::strided);
  const Expr rate = exp(input("w_a_log", f32, {key_heads, shared, 1, 1})), bias = input("w_dt_bias", bf16, {key_heads, shared, 1, 1});
  const auto over_norm = [](const Expr& x) { return rsqrt(row_sum(x * x) + 1e-6); };
  const Expr old = gather(state, slot) * exp(-rate * softplus(of_head("a") + bias)), of_k = over_norm(k);
  const Expr next = old + (v - row_sum(old * k) * of_k) * (sigmoid(of_head("b")) * of_k) * k;
  return KernelSpec("gated_delta_update")
      .output(state_name + "_out", f32, scatter(state, slot, next), {.in_place_of = state_name})
      .output("o", bf16, row_sum(next * q) * (over_norm(q) * (1 / std::sqrt(double{head}))));
}

KernelSpec gated_norm() {
  const Expr o = input("o_heads", bf16, {m, heads, head}), z = input("z", bf16, {m, heads, head}, Layout::strided);
  const Expr normed = o * rsqrt(row_mean(o * o) + 1e-6) * input("n_heads", bf16, {head});
  return KernelSpec("gated_norm").output("o_normed", bf16, normed * silu(z));
}

KernelSpec in_projection() { return KernelSpec("in_projection").output("in", bf16, projected("y", "w_in", in_columns, hidden)); }
KernelSpec output_projection() {
  return KernelSpec("output_projection").output("h", bf16, projected("o_rows", "w_out", hidden, values) + input("x", bf16, {m, hidden}));
}
KernelSpec gate_up_projection() {
  const Expr both = projected("y", "w_gate_up_r", 2 * mlp, hidden);
  return KernelSpec("gate_up_projection").output("act", bf16, silu(columns(both, 0, mlp)) * columns(both, mlp, mlp));
}
KernelSpec down_projection() {
  return KernelSpec("down_projection").output("x_out", bf16, projected("act", "w_down_r", hidden, mlp) + input("h", bf16, {m, hidden}));
}

// Slots of the sequences, in any order.
void set_slots(Layer& layer) {
  for (const std::int64_t rank : {3, 5}) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
    shape[0] = tokens;
    Tensor slot(i64, shape);
    for (std::int64_t t = 0; t < tokens; ++t) slot.set_bits(t, static_cast<std::uint64_t>((t * 3 + 5) % states));
    layer.set(fmt::format("state_slot_{}", rank), slot);
  }
}

void view_columns(Layer& layer, const char* from, const char* to, std::int64_t first, std::vector<std::int64_t> shape) {
  layer.view(from, to, [&](const Tensor& x) { return columns_in(x, first, shape); });
}

void run_recurrent_layer(Layer& layer, std::int64_t number) {
  const KernelSpec conv = convolution(fmt::format("window_{}", number)), rule = delta_rule(fmt::format("state_{}", number));
  const auto run = [&](const KernelSpec& spec) {
    layer.fill(spec);
    layer.run(spec);
  };
  constexpr std::int64_t shared = heads / key_heads;
  run(norm("x", "n_mixer"));
  run(in_projection());
  view_columns(layer, "in", "qkv", 0, {tokens, mixed_columns});
  view_columns(layer, "in", "z", mixed_columns, {tokens, heads, head});
  view_columns(layer, "in", "a", mixed_columns + values, {tokens, key_heads, shared, 1, 1});
  view_columns(layer, "in", "b", mixed_columns + values + heads, {tokens, key_heads, shared, 1, 1});
  run(conv);
  view_columns(layer, "mixed", "q_mixed", 0, {tokens, key_heads, 1, 1, head});
  view_columns(layer, "mixed", "k_mixed", keys, {tokens, key_heads, 1, 1, head});
  view_columns(layer, "mixed", "v_mixed", 2 * keys, {tokens, key_heads, shared, head, 1});
  run(rule);
  layer.view("o", "o_heads", [](const Tensor& o) { return reshaped(o, {tokens, heads, head}); });
  run(gated_norm());
  layer.view("o_normed", "o_rows", [](const Tensor& o) { return reshaped(o, {tokens, values}); });
  run(output_projection());
  run(norm("h", "n_mlp_r"));
  run(gate_up_projection());
  run(down_projection());
}

} // namespace

bool run_hybrid_class(const Target& to) {
  fmt::print("{}, hybrid: {} tokens, hidden {}, {} recurrent layers with {} heads of {} x {}, one with attention\n", to.arch(), tokens,
             hidden, recurrent_layers, heads, head, head);
  Layer layer(to, {{"m", tokens}, {"positions", positions}, {"slots", slots}, {"pages_of_all", pages_of_all}, {"state_slots", states}});
  set_slots(layer);
  for (std::int64_t number = 0; number < recurrent_layers; ++number) {
    run_recurrent_layer(layer, number);
    layer.view("x_out", "x", [](const Tensor& x) { return x; });
  }
  run_attention_layer(layer);
  return layer.close("h", 0.05) && layer.close("x_out", 0.05);
}
