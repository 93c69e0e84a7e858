// Rope: every mode of ggml's as x * cos(angle) + partner(x) * sign * sin(angle), with tables of one value a column.
#include "examples/ggml/operations/operations.h"
#include "examples/ggml/operations/pointwise_ops.h"
#include <algorithm>
#include <cmath>
#include <gen/spec/math.h>
#include <numbers>

namespace kiln_ggml {
namespace {

using kiln::Expr;

struct Rope {
  int dims, mode, context, offset;
  float base, scale, extrapolation, attention, fast, slow;
  int sections[4];

  explicit Rope(const ggml_tensor& node)
      : dims(node.op_params[1]), mode(node.op_params[2]), context(node.op_params[4]), offset(node.op_params[15]),
        base(float_parameter(node, 5)), scale(float_parameter(node, 6)), extrapolation(float_parameter(node, 7)),
        attention(float_parameter(node, 8)), fast(float_parameter(node, 9)), slow(float_parameter(node, 10)) {
    std::copy_n(node.op_params + 11, 4, sections);
  }
  bool has_sections() const { return (mode & GGML_ROPE_TYPE_MROPE) != 0; }
  bool is_vision() const { return mode == GGML_ROPE_TYPE_VISION; }
  bool pairs_neighbours() const { return mode == GGML_ROPE_TYPE_NORMAL; }
  int distance() const { return pairs_neighbours() ? 1 : is_vision() ? dims : dims / 2; }
  int turned() const { return is_vision() ? 2 * dims : dims; } // columns

  // The dimension at which a rotation makes `turns` turns over the context that the model was trained on.
  float dimension_of(float turns) const {
    return static_cast<float>(dims) * std::log(static_cast<float>(context) / (turns * 2 * std::numbers::pi_v<float>)) /
           (2 * std::log(base));
  }
  // The angle of pair `p` is this times the position (YaRN included).
  float frequency(int pair, int power) const {
    const float angle = std::pow(base, -2.0f * static_cast<float>(power) / static_cast<float>(dims));
    if (extrapolation == 0) return angle * scale;
    const float low = std::max(0.0f, std::floor(dimension_of(fast)));
    const float high = std::min(static_cast<float>(dims - 1), std::ceil(dimension_of(slow)));
    const float ramp = (static_cast<float>(pair) - low) / std::max(0.001f, high - low);
    const float mix = (1 - std::clamp(ramp, 0.0f, 1.0f)) * extrapolation;
    return angle * (scale * (1 - mix) + mix);
  }
  float magnitude() const { return extrapolation == 0 ? attention : attention * (1.0f + 0.1f * std::log(1.0f / scale)); }

  // Which of the four positions of a token turns pair `p`, and the power of its frequency.
  std::pair<int, int> source(int pair) const {
    if (!has_sections()) return {0, pair};
    const int all = sections[0] + sections[1] + sections[2] + sections[3], sector = pair % all;
    if (mode == GGML_ROPE_TYPE_IMROPE) {
      for (int c : {1, 2, 0})
        if (sector % 3 == c && sector < 3 * sections[c]) return {c, pair};
      return {3, pair};
    }
    int which = 0, first = 0;
    while (which < 3 && sector >= first + sections[which]) first += sections[which++];
    return {which, is_vision() ? sector - first : pair};
  }
};

} // namespace

bool supports_rope(const ggml_tensor& node) {
  const Rope rope(node);
  const ggml_tensor &x = *node.src[0], &position = *node.src[1];
  if ((x.type != GGML_TYPE_F32 && x.type != GGML_TYPE_F16) || node.type != x.type || position.type != GGML_TYPE_I32) return false;
  if (!ggml_is_contiguous(&position) || rope.offset != 0 || rope.turned() > x.ne[0] || x.ne[0] % 2 != 0) return false;
  if (node.src[2] != nullptr && (node.src[2]->type != GGML_TYPE_F32 || !ggml_is_contiguous(node.src[2]))) return false;
  return x.ne[0] % (2 * rope.distance()) == 0;
}

namespace {

// One value a column, of the columns that `rope` turns; zeros for the others.
template <typename Value> std::vector<float> value_by_column(const Rope& rope, std::int64_t cols, Value&& value) {
  std::vector<float> result(static_cast<std::size_t>(cols), 0.0f);
  for (int c = 0; c < rope.turned(); ++c) {
    const int pair = rope.pairs_neighbours() ? c / 2 : c % rope.distance();
    const bool second = rope.pairs_neighbours() ? c % 2 != 0 : c >= rope.distance();
    result[static_cast<std::size_t>(c)] = value(pair, second);
  }
  return result;
}

// The frequencies divided by the model's own factors, which are in device memory: a small kernel before.
TensorView divided_before(GraphBuilder& graph, const Rope& rope, const std::vector<float>& frequencies, const ggml_tensor& factors) {
  const auto cols = static_cast<std::int64_t>(frequencies.size());
  const Extents ne = {cols, 1, 1, 1};
  const TensorView result = dense_view(graph.scratch(frequencies.size() * 4), kiln::f32, ne);
  IndexMap pairs;
  for (int c = 0; c < cols; ++c) pairs.push_back(c >= rope.turned() ? 0 : rope.pairs_neighbours() ? c / 2 : c % rope.distance());
  KernelDraft draft(graph, Space::flat, ne);
  const Expr undivided = draft.read(dense_view(graph.constant(frequencies), kiln::f32, ne));
  draft.write(result, kiln::div_exact(undivided, draft.read(view_of(factors), pairs)));
  draft.launch("rope_frequencies");
  return result;
}

// ... or in the kernel itself, where every column has a factor.
Expr divided(KernelDraft& draft, const Rope& rope, const std::vector<float>& frequencies, const ggml_tensor& factors) {
  const auto cols = static_cast<std::int64_t>(frequencies.size());
  TensorView view = view_of(factors);
  if (rope.turned() != cols || view.ne[0] < cols / 2 || !view.is_aligned())
    return draft.read(divided_before(draft.graph(), rope, frequencies, factors));
  const Expr each = draft.row_of(view.data, cols / 2);
  return kiln::div_exact(draft.columns(frequencies), rope.pairs_neighbours() ? kiln::repeat(each, 2) : kiln::tile(each, 2));
}

} // namespace

Expr build_rope(KernelDraft& draft, const ggml_tensor& node, const Expr& x) {
  const Rope rope(node);
  const std::int64_t cols = node.ne[0];
  const bool back = node.op == GGML_OP_ROPE_BACK;
  Expr angle = 0.0;
  bool first = true;
  for (int which = 0; which < (rope.has_sections() ? 4 : 1); ++which) {
    const std::vector<float> frequencies = value_by_column(rope, cols, [&](int pair, bool) {
      const auto [position, power] = rope.source(pair);
      return position == which ? rope.frequency(pair, power) : 0.0f;
    });
    if (std::ranges::all_of(frequencies, [](float f) { return f == 0; })) continue;
    auto* const positions = static_cast<std::int32_t*>(node.src[1]->data) + which * node.ne[2];
    const Expr by_column = node.src[2] == nullptr ? draft.columns(frequencies) : divided(draft, rope, frequencies, *node.src[2]);
    const Expr part = kiln::cast(kiln::f32, draft.along(2, positions, kiln::i32)) * by_column;
    angle = first ? part : angle + part;
    first = false;
  }
  draft.never_in_place();
  const float size = rope.magnitude();
  std::vector<float> sizes(static_cast<std::size_t>(cols), 1.0f);
  std::fill_n(sizes.begin(), rope.turned(), size);
  const Expr signs = draft.columns(value_by_column(rope, cols, [&](int, bool second) { return (second != back ? size : -size); }));
  return x * kiln::cos(angle) * draft.columns(sizes) + kiln::partner(x, rope.distance()) * kiln::sin(angle) * signs;
}

} // namespace kiln_ggml
