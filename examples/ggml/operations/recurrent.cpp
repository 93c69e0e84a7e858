// GATED_DELTA_NET, SSM_SCAN: a state that each token changes. A row of the state is a row of the kernel, which takes some tokens one after
// the other; the next launch goes on with the state that it left.
#include "examples/ggml/operations/operations.h"
#include <algorithm>
#include <cmath>
#include <gen/spec/math.h>

namespace kiln_ggml {
namespace {

// Tokens of a kernel, unrolled. A row of 256 columns takes a wave, and where its tensors lie scalar registers: those of 8 tokens are too
// many.
std::int64_t tokens_at_once(std::int64_t columns) { return columns < 256 ? 8 : 4; }

// The node's result: a number a row of the state for each token, then the states [columns, rows, heads, sequences] behind the last token,
// behind the one before it, and so on.
struct Recurrence {
  Extents state; // columns, rows, heads, sequences
  std::int64_t tokens, states;
  float* results;

  std::int64_t row_count() const { return state[1] * state[2]; } // of a sequence
  std::int64_t size() const { return state[0] * row_count() * state[3]; }
  TensorView result(std::int64_t t) const {
    TensorView view = dense_view(results + t * row_count(), kiln::f32, {1, state[1], state[2], state[3]});
    view.stride[3] = tokens * row_count();
    return view;
  }
  // The state behind a token, if the node keeps it.
  std::optional<TensorView> state_behind(std::int64_t t) const {
    const std::int64_t back = tokens - 1 - t;
    if (back >= states) return {};
    return dense_view(results + tokens * row_count() * state[3] + back * size(), kiln::f32, state);
  }
};

struct Step {
  kiln::Expr state, result;
};

// step(draft, state before, t) -> Step
template <typename F> void lower_recurrence(GraphBuilder& graph, const Recurrence& r, TensorView begin, const std::string& name, F step) {
  for (std::int64_t first = 0; first < r.tokens; first += tokens_at_once(r.state[0])) {
    const std::int64_t end = std::min(first + tokens_at_once(r.state[0]), r.tokens);
    KernelDraft draft(graph, Space::rows, r.state);
    kiln::Expr state = draft.read(begin);
    for (std::int64_t t = first; t < end; ++t) {
      const Step next = step(draft, state, t);
      state = next.state;
      draft.write(r.result(t), next.result);
      if (const auto kept = r.state_behind(t)) draft.write(*kept, state);
    }
    if (end < r.tokens) {
      const auto kept = r.state_behind(end - 1);
      begin = kept ? *kept : dense_view(graph.scratch(static_cast<std::size_t>(r.size()) * sizeof(float)), kiln::f32, r.state);
      if (!kept) draft.write(begin, state);
    }
    draft.launch(name);
  }
}

// Token t of a tensor whose third dimension counts tokens.
TensorView token_of(const TensorView& tensor, std::int64_t t) {
  TensorView view = tensor;
  view.data = static_cast<float*>(view.data) + t * view.stride[2];
  return view;
}
// A token of a tensor [1 or columns, heads, tokens, sequences], the same for all rows of a head's state.
TensorView along_columns(const ggml_tensor& tensor, std::int64_t t) {
  TensorView view = token_of(view_of(tensor), t);
  view.ne = {view.ne[0], 1, view.ne[1], view.ne[3]};
  view.stride = {view.stride[0], view.stride[1], view.stride[1], view.stride[3]};
  return view;
}
// A number for each row, of a tensor [rows, heads, tokens, sequences].
TensorView of_rows(const TensorView& tensor, std::int64_t t) {
  TensorView view = token_of(tensor, t);
  view.ne = {1, view.ne[0], view.ne[1], view.ne[3]};
  view.stride = {1, view.stride[0], view.stride[1], view.stride[3]};
  return view;
}

bool is_f32(const ggml_tensor* tensor) { return tensor == nullptr || tensor->type == GGML_TYPE_F32; }

// States behind the results of a node.
std::int64_t states_of(const ggml_tensor& node, const ggml_tensor& results, std::int64_t size) {
  return (ggml_nelements(&node) - ggml_nelements(&results)) / size;
}

Recurrence gated_delta_of(const ggml_tensor& node) {
  const ggml_tensor& v = *node.src[2];
  Recurrence r{.state = {v.ne[0], v.ne[0], v.ne[1], v.ne[3]}, .tokens = v.ne[2], .states = 0, .results = static_cast<float*>(node.data)};
  r.states = states_of(node, v, r.size());
  return r;
}

} // namespace

bool supports_gated_delta(const ggml_tensor& node) {
  const Recurrence r = gated_delta_of(node);
  const ggml_tensor &q = *node.src[0], &k = *node.src[1];
  const std::int64_t heads = r.state[2], sequences = r.state[3];
  return std::ranges::all_of(node.src, is_f32) && is_f32(&node) && r.state[0] % 4 == 0 && q.ne[3] == sequences && k.ne[3] == sequences &&
         heads % q.ne[1] == 0 && heads % k.ne[1] == 0 && ggml_is_contiguous(node.src[5]) && ggml_is_contiguous(&node);
}

void lower_gated_delta(GraphBuilder& graph, const ggml_tensor& node) {
  const Recurrence r = gated_delta_of(node);
  const TensorView v = view_of(*node.src[2]);
  lower_recurrence(graph, r, dense_view(node.src[5]->data, kiln::f32, r.state), "gated_delta",
                   [&](KernelDraft& draft, const kiln::Expr& before, std::int64_t t) -> Step {
                     const kiln::Expr q = draft.read(along_columns(*node.src[0], t)), k = draft.read(along_columns(*node.src[1], t));
                     const kiln::Expr old = before * kiln::exp(draft.read(along_columns(*node.src[3], t)));
                     const kiln::Expr error = draft.read(of_rows(v, t)) - kiln::row_sum(old * k);
                     const kiln::Expr state = old + error * draft.read(along_columns(*node.src[4], t)) * k;
                     return {state, kiln::row_sum(state * q) * (1 / std::sqrt(static_cast<double>(r.state[0])))};
                   });
}

namespace {

// Mamba's state space: x [rows, heads, tokens, sequences], dt [heads, tokens, sequences], a [1 or columns, heads], b and c [columns,
// groups, tokens, sequences] of consecutive heads. Heads of a group are rows of it.
struct StateSpace {
  const ggml_tensor &x, &dt, &a, &b, &c, &ids;
  Recurrence recurrence;
  bool decays_by_column() const { return a.ne[0] > 1; }
};

StateSpace state_space_of(const ggml_tensor& node) {
  const ggml_tensor &s = *node.src[0], &x = *node.src[1], &b = *node.src[4];
  StateSpace result{.x = x,
                    .dt = *node.src[2],
                    .a = *node.src[3],
                    .b = b,
                    .c = *node.src[5],
                    .ids = *node.src[6],
                    .recurrence = {.state = {s.ne[0], x.ne[0] * x.ne[1] / b.ne[1], b.ne[1], x.ne[3]},
                                   .tokens = x.ne[2],
                                   .states = 0,
                                   .results = static_cast<float*>(node.data)}};
  result.recurrence.states = states_of(node, x, result.recurrence.size());
  return result;
}

// The states that the sequences begin with: [columns, rows, groups, sequences], one after the other.
TensorView states_by_id(GraphBuilder& graph, const ggml_tensor& s, const StateSpace& space) {
  const std::int64_t columns = s.ne[0], rows = s.ne[1] * s.ne[2], sequences = space.x.ne[3];
  const TensorView states =
      dense_view(graph.scratch(static_cast<std::size_t>(space.recurrence.size()) * sizeof(float)), kiln::f32, space.recurrence.state);
  const kiln::Expr table = kiln::input("table", kiln::f32, {kiln::dynamic("n", 1), rows, columns});
  const kiln::Expr id = kiln::input("id", kiln::i32, {kiln::dynamic("sequences"), 1, 1});
  graph.launch(kiln::KernelSpec("states").output("y", kiln::f32, kiln::gather(table, id)),
               {{"table", kiln::DeviceTensor{s.data, kiln::f32, {s.ne[3], rows, columns}, 0}},
                {"id", kiln::DeviceTensor{space.ids.data, kiln::i32, {sequences, 1, 1}, 0}},
                {"y", kiln::DeviceTensor{states.data, kiln::f32, {sequences, rows, columns}, 0}}});
  return states;
}

} // namespace

bool supports_ssm_scan(const ggml_tensor& node) {
  const StateSpace space = state_space_of(node);
  const ggml_tensor &x = space.x, &b = space.b;
  return std::all_of(node.src, node.src + 6, is_f32) && is_f32(&node) && space.ids.type == GGML_TYPE_I32 && space.b.ne[0] % 4 == 0 &&
         x.ne[1] % b.ne[1] == 0 && (space.decays_by_column() ? x.ne[0] == 1 && b.ne[1] == 1 : true) && ggml_is_contiguous(node.src[0]) &&
         ggml_is_contiguous(&node) && ggml_is_contiguous(&space.ids);
}

void lower_ssm_scan(GraphBuilder& graph, const ggml_tensor& node) {
  const StateSpace space = state_space_of(node);
  const Recurrence& r = space.recurrence;
  const TensorView begin = states_by_id(graph, *node.src[0], space);
  // For each row of a token: x times dt, and what decays by it, or dt where that is one a column.
  const Extents grouped = {r.state[1], r.state[2], r.tokens, r.state[3]};
  const auto rows_of_tokens = [&] {
    return dense_view(graph.scratch(static_cast<std::size_t>(ggml_nelements(&space.x)) * sizeof(float)), kiln::f32, view_of(space.x).ne);
  };
  TensorView added = rows_of_tokens(), decay = rows_of_tokens();
  KernelDraft before(graph, Space::rows, added.ne);
  TensorView dt = view_of(space.dt), a = view_of(space.a);
  dt.stride = {1, dt.stride[0], dt.stride[1], dt.stride[2]};
  dt.ne = {1, dt.ne[0], dt.ne[1], dt.ne[2]};
  const kiln::Expr step = kiln::softplus(before.read(dt)),
                   each = before.columns(std::vector<float>(static_cast<std::size_t>(added.ne[0]), 1));
  before.write(added, before.read(view_of(space.x)) * step);
  before.write(decay, each * (space.decays_by_column() ? step : kiln::exp(step * before.read(a))));
  before.launch("ssm_steps");
  added = dense_view(added.data, kiln::f32, grouped);
  decay = dense_view(decay.data, kiln::f32, grouped);
  a.ne = {a.ne[0], a.ne[1], 1, 1};
  lower_recurrence(graph, r, begin, "ssm_scan", [&](KernelDraft& draft, const kiln::Expr& old, std::int64_t t) -> Step {
    kiln::Expr kept = draft.read(of_rows(decay, t));
    if (space.decays_by_column()) kept = kiln::exp(kept * draft.read(a));
    const kiln::Expr state = old * kept + draft.read(along_columns(space.b, t)) * draft.read(of_rows(added, t));
    return {state, kiln::row_sum(state * draft.read(along_columns(space.c, t)))};
  });
}

} // namespace kiln_ggml
