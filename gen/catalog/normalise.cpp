// Catalogue: norms and softmax, over the columns of each row.
#include "gen/catalog/entries.h"

namespace kiln::catalog_entries {
namespace {

Expr rms_normalised(const Expr& x, const Expr& weight) { return x * rsqrt(row_mean(x * x) + norm_epsilon) * weight; }

} // namespace

KernelSpec add_rmsnorm_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options), residual = activation("residual", options);
  const Expr weight = column_vector("weight", options);
  const Expr h = cast(options.dtype, x + residual); // the rounded residual is what the next layer sees, so this one does too
  const Expr y = rms_normalised(h, weight);

  KernelSpec spec(options.dynamic_scale ? "add_rmsnorm_dynamic_quant" : "add_rmsnorm_quant");
  spec.output("residual_out", options.dtype, h, {.in_place_of = options.in_place ? "residual" : ""});
  const Expr scale = options.dynamic_scale ? scale_of(row_absmax(y), options.fp8) : tensor_scale();
  if (options.dynamic_scale) spec.output("scale", f32, scale);
  return spec.output("q", options.fp8, y / scale);
}

KernelSpec add_rmsnorm_dynamic_quant(const CatalogOptions& options) {
  CatalogOptions dynamic_options = options;
  dynamic_options.dynamic_scale = true;
  return add_rmsnorm_quant(dynamic_options);
}

KernelSpec rmsnorm(const CatalogOptions& options) {
  const Expr x = activation("x", options), weight = column_vector("weight", options);
  return KernelSpec("rmsnorm").output("y", options.dtype, rms_normalised(x, weight));
}

KernelSpec layernorm(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr weight = column_vector("weight", options), bias = column_vector("bias", options);
  const Expr centred = x - row_mean(x);
  const Expr y = centred * rsqrt(row_mean(centred * centred) + norm_epsilon) * weight + bias;
  return KernelSpec("layernorm").output("y", options.dtype, y);
}

KernelSpec softmax(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr e = exp(x - row_max(x));
  return KernelSpec("softmax").output("y", options.dtype, e / row_sum(e));
}

} // namespace kiln::catalog_entries
