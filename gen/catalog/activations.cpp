// Activations and sums: the spec of each.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"

namespace kiln {

KernelSpec swiglu_quant(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("swiglu_quant").output("q", options.fp8, silu(gate) * up / input("scale", f32, {}));
}

KernelSpec gelu_mul(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("gelu_mul").output("y", options.dtype, gelu(gate) * up);
}

KernelSpec silu_mul(const CatalogOptions& options) {
  const Expr gate = activation("gate", options), up = activation("up", options);
  return KernelSpec("silu_mul").output("y", options.dtype, silu(gate) * up);
}

// gpt-oss's: both halves limited to 7, a slope of 1.702, and one more than up.
KernelSpec clamped_swiglu(const CatalogOptions& options) {
  const Expr gate = min(activation("gate", options), 7), up = clamp(activation("up", options), -7, 7);
  return KernelSpec("clamped_swiglu").output("y", options.dtype, (up + 1) * gate * sigmoid(1.702 * gate));
}

KernelSpec add_bias_gelu(const CatalogOptions& options) {
  const Expr x = activation("x", options), bias = input("bias", options.dtype, {options.cols});
  return KernelSpec("add_bias_gelu").output("y", options.dtype, gelu_tanh(x + bias));
}

KernelSpec scaled_add(const CatalogOptions& options) {
  const Expr x = activation("x", options), y = activation("y", options);
  return KernelSpec("scaled_add").output("sum", options.dtype, x + scalar("alpha") * y);
}

} // namespace kiln
