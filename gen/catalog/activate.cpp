// Catalogue: activations and sums, element by element.
#include "gen/catalog/entries.h"

namespace kiln::catalog_entries {

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

} // namespace kiln::catalog_entries
