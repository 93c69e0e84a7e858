// Activations and sums: the spec of each.
#include "gen/catalog/activations.h"
#include "gen/spec/math.h"

namespace kiln {
namespace {

Expr tensor_of_rows(const char* name, const CatalogOptions& options) {
  const Dim rows = options.max_rows > 0 ? dynamic("rows", std::nullopt, options.max_rows) : dynamic("rows");
  return input(name, options.dtype, {rows, options.cols});
}

} // namespace

KernelSpec swiglu_quant(const CatalogOptions& options) {
  const Expr gate = tensor_of_rows("gate", options), up = tensor_of_rows("up", options);
  return KernelSpec("swiglu_quant").output("q", options.fp8, silu(gate) * up / input("scale", f32, {}));
}

KernelSpec gelu_mul(const CatalogOptions& options) {
  const Expr gate = tensor_of_rows("gate", options), up = tensor_of_rows("up", options);
  return KernelSpec("gelu_mul").output("y", options.dtype, gelu(gate) * up);
}

KernelSpec silu_mul(const CatalogOptions& options) {
  const Expr gate = tensor_of_rows("gate", options), up = tensor_of_rows("up", options);
  return KernelSpec("silu_mul").output("y", options.dtype, silu(gate) * up);
}

// gpt-oss's: both halves limited to 7, a slope of 1.702, and one more than up.
KernelSpec clamped_swiglu(const CatalogOptions& options) {
  const Expr gate = min(tensor_of_rows("gate", options), 7), up = clamp(tensor_of_rows("up", options), -7, 7);
  return KernelSpec("clamped_swiglu").output("y", options.dtype, (up + 1) * gate * sigmoid(1.702 * gate));
}

KernelSpec add_bias_gelu(const CatalogOptions& options) {
  const Expr x = tensor_of_rows("x", options), bias = input("bias", options.dtype, {options.cols});
  return KernelSpec("add_bias_gelu").output("y", options.dtype, gelu_tanh(x + bias));
}

KernelSpec scaled_add(const CatalogOptions& options) {
  const Expr x = tensor_of_rows("x", options), y = tensor_of_rows("y", options);
  return KernelSpec("scaled_add").output("sum", options.dtype, x + scalar("alpha") * y);
}

} // namespace kiln
