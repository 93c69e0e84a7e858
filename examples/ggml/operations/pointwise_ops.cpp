// Pointwise operations of ggml: the table.
#include "examples/ggml/operations/pointwise_ops.h"
#include <cstring>
#include <gen/spec/math.h>
#include <iterator>

namespace kiln_ggml {
namespace {

using kiln::Expr;
using Operands = std::span<const Expr>;

struct Line {
  int op; // of ggml_op, or of ggml_unary_op or ggml_glu_op
  BuildPointwise build;
};

#define KILN_GGML_BUILD(...)                                                                                                               \
  [](KernelDraft& draft, const ggml_tensor& node, Operands x) -> Expr {                                                                    \
    (void)draft, (void)node;                                                                                                               \
    return __VA_ARGS__;                                                                                                                    \
  }

Expr number(KernelDraft& draft, const ggml_tensor& node, int index) { return draft.number(float_parameter(node, index)); }
Expr truncated(const Expr& x) { return kiln::select(x < 0.0, -kiln::floor(-x), kiln::floor(x)); }
// Halves go away from zero, which kiln::round, to nearest even, does not do.
Expr rounded(const Expr& x) {
  const Expr whole = kiln::floor(kiln::abs(x));
  const Expr size = whole + kiln::select(kiln::abs(x) - whole >= 0.5, 1.0, 0.0);
  return kiln::select(x < 0.0, -size, size);
}
Expr expm1(const Expr& x) { return kiln::exp(x) - 1.0; }
Expr hard_sigmoid(const Expr& x) { return kiln::min(1.0, kiln::max(0.0, (x + 3.0) * (1.0 / 6.0))); }
Expr quick(const Expr& x) { return x * kiln::sigmoid(x * 1.702); }
Expr xielu(const Expr& x, const Expr& alpha_n, const Expr& alpha_p, const Expr& beta, const Expr& eps) {
  return kiln::select(x > 0.0, alpha_p * x * x + beta * x, (expm1(kiln::min(x, eps)) - x) * alpha_n + beta * x);
}
Expr swiglu_oai(const Expr& gate, const Expr& up, const Expr& alpha, const Expr& limit) {
  const Expr x = kiln::min(gate, limit), y = kiln::clamp(up, -limit, limit);
  return x * kiln::sigmoid(alpha * x) * (y + 1.0);
}

Expr swiglu_clamp(const Expr& gate, const Expr& up, const Expr& limit) {
  return kiln::silu(kiln::min(gate, limit)) * kiln::clamp(up, -limit, limit);
}

const Line operations[] = {
    {GGML_OP_ADD, KILN_GGML_BUILD(x[0] + x[1])},
    {GGML_OP_ADD1, KILN_GGML_BUILD(x[0] + x[1])},
    {GGML_OP_SUB, KILN_GGML_BUILD(x[0] - x[1])},
    {GGML_OP_MUL, KILN_GGML_BUILD(x[0] * x[1])},
    {GGML_OP_DIV, KILN_GGML_BUILD(kiln::div_exact(x[0], x[1]))},
    {GGML_OP_SQR, KILN_GGML_BUILD(x[0] * x[0])},
    {GGML_OP_SQRT, KILN_GGML_BUILD(kiln::sqrt(x[0]))},
    {GGML_OP_LOG, KILN_GGML_BUILD(kiln::log(x[0]))},
    {GGML_OP_SIN, KILN_GGML_BUILD(kiln::sin(x[0]))},
    {GGML_OP_COS, KILN_GGML_BUILD(kiln::cos(x[0]))},
    {GGML_OP_SCALE, KILN_GGML_BUILD(x[0] * number(draft, node, 0) + number(draft, node, 1))},
    {GGML_OP_CLAMP, KILN_GGML_BUILD(kiln::clamp(x[0], number(draft, node, 0), number(draft, node, 1)))},
    {GGML_OP_LEAKY_RELU, KILN_GGML_BUILD(kiln::max(x[0], 0.0) + number(draft, node, 0) * kiln::min(x[0], 0.0))},
};

const Line unary_operations[] = {
    {GGML_UNARY_OP_ABS, KILN_GGML_BUILD(kiln::abs(x[0]))},
    {GGML_UNARY_OP_SGN, KILN_GGML_BUILD(kiln::select(x[0] > 0.0, 1.0, kiln::select(x[0] < 0.0, -1.0, 0.0)))},
    {GGML_UNARY_OP_NEG, KILN_GGML_BUILD(-x[0])},
    {GGML_UNARY_OP_STEP, KILN_GGML_BUILD(kiln::select(x[0] > 0.0, 1.0, 0.0))},
    {GGML_UNARY_OP_TANH, KILN_GGML_BUILD(kiln::tanh(x[0]))},
    {GGML_UNARY_OP_ELU, KILN_GGML_BUILD(kiln::select(x[0] > 0.0, x[0], expm1(x[0])))},
    {GGML_UNARY_OP_RELU, KILN_GGML_BUILD(kiln::relu(x[0]))},
    {GGML_UNARY_OP_SIGMOID, KILN_GGML_BUILD(kiln::sigmoid(x[0]))},
    {GGML_UNARY_OP_GELU, KILN_GGML_BUILD(kiln::gelu_tanh(x[0]))},
    {GGML_UNARY_OP_GELU_QUICK, KILN_GGML_BUILD(quick(x[0]))},
    {GGML_UNARY_OP_GELU_ERF, KILN_GGML_BUILD(kiln::gelu(x[0]))},
    {GGML_UNARY_OP_SILU, KILN_GGML_BUILD(kiln::silu(x[0]))},
    {GGML_UNARY_OP_HARDSWISH, KILN_GGML_BUILD(x[0] * hard_sigmoid(x[0]))},
    {GGML_UNARY_OP_HARDSIGMOID, KILN_GGML_BUILD(hard_sigmoid(x[0]))},
    {GGML_UNARY_OP_EXP, KILN_GGML_BUILD(kiln::exp(x[0]))},
    {GGML_UNARY_OP_EXPM1, KILN_GGML_BUILD(expm1(x[0]))},
    {GGML_UNARY_OP_SOFTPLUS, KILN_GGML_BUILD(kiln::softplus(x[0]))},
    {GGML_UNARY_OP_FLOOR, KILN_GGML_BUILD(kiln::floor(x[0]))},
    {GGML_UNARY_OP_CEIL, KILN_GGML_BUILD(-kiln::floor(-x[0]))},
    {GGML_UNARY_OP_ROUND, KILN_GGML_BUILD(rounded(x[0]))},
    {GGML_UNARY_OP_TRUNC, KILN_GGML_BUILD(truncated(x[0]))},
    {GGML_UNARY_OP_XIELU,
     KILN_GGML_BUILD(xielu(x[0], number(draft, node, 1), number(draft, node, 2), number(draft, node, 3), number(draft, node, 4)))},
};

const Line glu_operations[] = {
    {GGML_GLU_OP_REGLU, KILN_GGML_BUILD(kiln::relu(x[0]) * x[1])},
    {GGML_GLU_OP_GEGLU, KILN_GGML_BUILD(kiln::gelu_tanh(x[0]) * x[1])},
    {GGML_GLU_OP_SWIGLU, KILN_GGML_BUILD(kiln::silu(x[0]) * x[1])},
    {GGML_GLU_OP_SWIGLU_OAI, KILN_GGML_BUILD(swiglu_oai(x[0], x[1], number(draft, node, 2), number(draft, node, 3)))},
    {GGML_GLU_OP_SWIGLU_CLAMP, KILN_GGML_BUILD(swiglu_clamp(x[0], x[1], number(draft, node, 3)))},
    {GGML_GLU_OP_GEGLU_ERF, KILN_GGML_BUILD(kiln::gelu(x[0]) * x[1])},
    {GGML_GLU_OP_GEGLU_QUICK, KILN_GGML_BUILD(quick(x[0]) * x[1])},
};

#undef KILN_GGML_BUILD

template <std::size_t n> BuildPointwise find(const Line (&table)[n], int op) {
  for (const Line& line : table)
    if (line.op == op) return line.build;
  return nullptr;
}

// The half of each row that begins at column `first`.
TensorView half(TensorView v, std::int64_t first) {
  v.data = static_cast<std::byte*>(v.data) + static_cast<std::size_t>(first) * bytes_of(v.dtype);
  v.ne[0] /= 2;
  return v;
}

} // namespace

float float_parameter(const ggml_tensor& node, int index) {
  float value = 0;
  std::memcpy(&value, node.op_params + index, sizeof value);
  return value;
}

BuildPointwise find_pointwise(const ggml_tensor& node) {
  if (node.op == GGML_OP_UNARY) return find(unary_operations, ggml_get_unary_op(&node));
  if (node.op == GGML_OP_GLU) return find(glu_operations, ggml_get_glu_op(&node));
  return find(operations, node.op);
}

bool supports_pointwise(const ggml_tensor& node) {
  if (find_pointwise(node) == nullptr || !is_float(node.type)) return false;
  for (const ggml_tensor* source : node.src)
    if (source != nullptr && (!is_float(source->type) || !ggml_can_repeat(source, &node)) && node.op != GGML_OP_GLU) return false;
  if (node.op == GGML_OP_GLU && (!is_float(node.src[0]->type) || node.src[0]->nb[0] != ggml_type_size(node.src[0]->type))) return false;
  return true;
}

std::vector<TensorView> pointwise_sources(const ggml_tensor& node) {
  std::vector<TensorView> views;
  for (const ggml_tensor* source : node.src)
    if (source != nullptr) views.push_back(view_of(*source));
  if (node.op != GGML_OP_GLU || views.size() == 2) return views;
  const bool swapped = node.op_params[1] != 0;
  const TensorView low = half(views[0], 0), high = half(views[0], views[0].ne[0] / 2);
  return swapped ? std::vector{high, low} : std::vector{low, high};
}

} // namespace kiln_ggml
