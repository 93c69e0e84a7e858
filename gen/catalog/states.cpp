// Recurrent layers: a token, or several, update the state that a slot names, which is read and written once.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr double epsilon_of_gate = 1e-6;
constexpr std::int64_t max_tokens = 8, max_window = 8;

// What several tokens of a sequence have each, [sequences, tokens, ...row], by token; of one token [tokens, ...row].
class Tokens {
public:
  explicit Tokens(const CatalogOptions& options) : count_(options.tokens) {}
  std::int64_t count() const { return count_; }

  Expr at(std::int64_t token, const char* name, DType type, const Shape& row) const {
    const Expr all = input(name, type, with_tokens(row));
    return count_ == 1 ? all : unstack(all, token);
  }
  // The state before the first token, of rows `row`.
  Expr before(const Expr& state, const CatalogOptions& o) const {
    Shape one(state.shape().size(), 1);
    one[0] = sequences();
    return gather(state, input(count_ == 1 ? "slot" : "from", o.index, one));
  }
  // The state behind each token, to slots of their own.
  void scatter_to(KernelSpec& spec, const Expr& state, std::vector<Expr> behind, const CatalogOptions& o) const {
    Shape one(state.shape().size() - 1, 1);
    const Expr slot = input("slot", o.index, with_tokens(one));
    for (Expr& each : behind) each = cast(state.dtype(), each);
    spec.output("state_out", state.dtype(), scatter(state, slot, stacked(std::move(behind))), {.in_place_of = "state"});
  }
  Expr stacked(std::vector<Expr> values) const { return count_ == 1 ? values[0] : stack(std::move(values)); }

private:
  Dim sequences() const { return dynamic(count_ == 1 ? "tokens" : "sequences"); }
  Shape with_tokens(const Shape& row) const {
    Shape shape{sequences()};
    if (count_ > 1) shape.push_back(count_);
    shape.insert(shape.end(), row.begin(), row.end());
    return shape;
  }

  std::int64_t count_;
};

Expr state_of(DType type, const Shape& row) {
  Shape shape{dynamic("slots", 1)};
  shape.insert(shape.end(), row.begin(), row.end());
  return input("state", type, shape);
}

} // namespace

// A causal convolution of `width` tokens and silu: the state has the last width - 1 tokens, each of them a row of all channels.
KernelSpec conv1d_update(const CatalogOptions& o) {
  const Tokens tokens(o);
  const std::int64_t before = o.width - 1;
  const Expr state = state_of(o.dtype, {before, o.cols}), old = tokens.before(state, o);
  const Expr weight = input("weight", o.dtype, {1, o.width, o.cols}), bias = input("bias", o.dtype, {o.cols});
  std::vector<Expr> window, states, results;
  for (std::int64_t i = 0; i < before; ++i) window.push_back(unstack(old, i));
  for (std::int64_t t = 0; t < tokens.count(); ++t) {
    window.push_back(cast(state.dtype(), tokens.at(t, "x", o.dtype, {o.cols})));
    Expr sum = bias;
    for (std::int64_t i = 0; i < o.width; ++i) sum = sum + window[static_cast<std::size_t>(t + i)] * unstack(weight, i);
    results.push_back(cast(o.dtype, silu(sum)));
    states.push_back(stack({window.end() - before, window.end()}));
  }
  KernelSpec spec("conv1d_update");
  tokens.scatter_to(spec, state, std::move(states), o);
  return spec.output("y", o.dtype, tokens.stacked(std::move(results)));
}

// The gated delta rule of GDN, and with a gate for each channel that of KDA. A head's state is a matrix [dv, dk], of which the kernel's
// rows are the rows; heads of q and k are shared by as many of v.
KernelSpec gated_delta_update(const CatalogOptions& o) {
  const Tokens tokens(o);
  const std::int64_t groups = o.kv_heads, shared = o.heads / o.kv_heads, dk = o.cols, dv = o.d;
  const Expr state = state_of(o.state, {groups, shared, dv, dk});
  const Expr rate = input("a_log", f32, {groups, shared, 1, 1});
  const Expr bias = input("dt_bias", o.dtype, {groups, shared, 1, o.per_channel ? dk : 1});
  Expr s = tokens.before(state, o);
  std::vector<Expr> states, results;
  for (std::int64_t t = 0; t < tokens.count(); ++t) {
    const Expr q = tokens.at(t, "q", o.dtype, {groups, 1, 1, dk}), k = tokens.at(t, "k", o.dtype, {groups, 1, 1, dk});
    const Expr a = tokens.at(t, "a", o.dtype, {groups, shared, 1, o.per_channel ? dk : 1});
    const Expr beta = sigmoid(tokens.at(t, "b", o.dtype, {groups, shared, 1, 1}));
    const Expr v = tokens.at(t, "v", o.dtype, {groups, shared, dv, 1});
    const auto over_norm = [](const Expr& x) { return rsqrt(row_sum(x * x) + epsilon_of_gate); };
    const Expr old = s * exp(-exp(rate) * softplus(a + bias));
    const Expr of_k = over_norm(k), of_q = over_norm(q) * (1 / std::sqrt(static_cast<double>(dk)));
    s = cast(state.dtype(), old + (v - row_sum(old * k) * of_k) * (beta * of_k) * k);
    states.push_back(s);
    results.push_back(cast(o.dtype, row_sum(s * q) * of_q));
  }
  KernelSpec spec("gated_delta_update");
  tokens.scatter_to(spec, state, std::move(states), o);
  return spec.output("o", o.dtype, tokens.stacked(std::move(results)));
}

// Mamba-2's state space: a head's state is [d, cols], and groups of heads share what enters it and what it is read by.
KernelSpec ssm_update(const CatalogOptions& o) {
  const Tokens tokens(o);
  const std::int64_t groups = o.kv_heads, shared = o.heads / o.kv_heads;
  const Expr state = state_of(o.state, {groups, shared, o.d, o.cols});
  const auto of_head = [&](const char* name, DType type) { return input(name, type, {groups, shared, 1, 1}); };
  const Expr rate = -exp(of_head("a_log", f32)), bias = of_head("dt_bias", o.dtype), skip = of_head("skip", o.dtype);
  Expr s = tokens.before(state, o);
  std::vector<Expr> states, results;
  for (std::int64_t t = 0; t < tokens.count(); ++t) {
    const Expr x = tokens.at(t, "x", o.dtype, {groups, shared, o.d, 1}), dt = tokens.at(t, "dt", o.dtype, {groups, shared, 1, 1});
    const auto of_group = [&](const char* name) { return tokens.at(t, name, o.dtype, {groups, 1, 1, o.cols}); };
    const Expr step = softplus(dt + bias);
    s = cast(state.dtype(), s * exp(rate * step) + (step * x) * of_group("b"));
    states.push_back(s);
    results.push_back(cast(o.dtype, row_sum(s * of_group("c")) + skip * x));
  }
  KernelSpec spec("ssm_update");
  tokens.scatter_to(spec, state, std::move(states), o);
  return spec.output("y", o.dtype, tokens.stacked(std::move(results)));
}

// The RMS norm of each row, times silu(gate): behind a gated delta rule; gate_first, behind a state space, norms what is gated already.
KernelSpec gated_norm(const CatalogOptions& o) {
  const Expr x = activation("x", o), gate = silu(activation("gate", o));
  const Expr h = o.gate_first ? x * gate : x;
  const Expr y = h * rsqrt(row_mean(h * h) + epsilon_of_gate) * input("weight", o.dtype, {o.cols});
  return KernelSpec("gated_norm").output("y", o.dtype, o.gate_first ? y : y * gate);
}

std::optional<Refusal> why_no_state(const std::string& subject, const CatalogOptions& o) {
  const auto of = [&](std::string fact, std::string remedy) { return Refusal{subject, std::move(fact), std::move(remedy)}; };
  if (o.tokens < 1 || o.tokens > max_tokens) return of(fmt::format("tokens is {}", o.tokens), fmt::format("use 1 to {}", max_tokens));
  if (o.width < 3 || o.width > max_window) return of(fmt::format("width is {}", o.width), fmt::format("use 3 to {}", max_window));
  if (o.d < 1 || o.d > 65536) return of(fmt::format("d is {}", o.d), "use 1 to 65536");
  if (o.heads < 1 || o.kv_heads < 1 || o.heads % o.kv_heads)
    return of(fmt::format("heads is {} and kv_heads {}", o.heads, o.kv_heads), "use heads that kv_heads divide: each is shared by as many");
  if (o.state != f32 && o.state != bf16 && o.state != f16 && !is_fp8(o.state))
    return of(fmt::format("state is {}", to_string(o.state)), "use f32, bf16, f16 or an fp8 type");
  return {};
}

} // namespace kiln
