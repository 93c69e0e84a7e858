// Catalogue: to fp8 and back, with one scale a row or a group.
#include "gen/catalog/entries.h"

namespace kiln::catalog_entries {

KernelSpec per_token_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(row_absmax(x), options.fp8);
  return KernelSpec("per_token_quant").output("scale", f32, scale).output("q", options.fp8, x / scale);
}

KernelSpec group_quant(const CatalogOptions& options) {
  const Expr x = activation("x", options);
  const Expr scale = scale_of(group_absmax(x, options.group), options.fp8);
  return KernelSpec("group_quant")
      .output("scale", f32, scale)
      .output("q", options.fp8, x / ungroup(scale, options.group, options.cols));
}

KernelSpec dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options)), scale = input("scale", f32, {dynamic("rows"), 1});
  return KernelSpec("dequant").output("y", options.dtype, q * scale);
}

KernelSpec group_dequant(const CatalogOptions& options) {
  const Expr q = input("q", options.fp8, activation_shape(options));
  const Expr scale = input("scale", f32, {dynamic("rows"), group_count(options.cols, options.group)});
  return KernelSpec("group_dequant").output("y", options.dtype, q * ungroup(scale, options.group, options.cols));
}

KernelSpec cast_quant(const CatalogOptions& options) {
  return KernelSpec("cast_quant").output("q", options.fp8, activation("x", options));
}

} // namespace kiln::catalog_entries
