// Low-rank additions: x w^T + (x a^T) b^T in two launches. The narrow product stands beside the base one, or takes each row's adapter as
// products by expert take an expert's matrix; the wide one adds.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"

namespace kiln {
namespace {

Dim lora_rows(const CatalogOptions& options) { return dynamic("m", 1, options.m); }

// Each row's product with the matrix of its adapter; rows in the order of their adapters as moe_sort of one expert a token gives it.
Expr by_adapter(const Expr& product, const CatalogOptions& options) {
  return by_expert(product, input("order", i32, {lora_rows(options), 1}), input("offsets", i32, {options.experts + 1}));
}

} // namespace

KernelSpec lora_shrink(const CatalogOptions& options) {
  const Expr x = input("x", options.dtype, {lora_rows(options), options.k});
  const Expr a = input("a", options.dtype, {options.experts, options.rank, options.k});
  return KernelSpec("lora_shrink").output("shrunk", options.dtype, by_adapter(matmul_nt(x, a), options));
}

KernelSpec lora_expand_add(const CatalogOptions& options) {
  const Expr shrunk = input("shrunk", options.dtype, {lora_rows(options), 1, options.rank});
  const Expr b = input("b", options.dtype, {options.experts, options.n, options.rank});
  const Expr base = input("base", f32, {lora_rows(options), 1, options.n});
  return KernelSpec("lora_expand_add").output("y", options.dtype, by_adapter(matmul_nt(shrunk, b), options) + base);
}

// One adapter for all rows: the base product and the narrow one in one launch. lora_expand_add with one expert adds the rest.
KernelSpec gemm_lora(const CatalogOptions& options) {
  const Expr x = input("x", options.dtype, {lora_rows(options), options.k});
  const Expr w = input("w", options.dtype, {options.n, options.k}), a = input("a", options.dtype, {options.rank, options.k});
  return KernelSpec("gemm_lora").output("base", f32, matmul_nt(x, w)).output("shrunk", options.dtype, matmul_nt(x, a));
}

// The whole of it: the wide product is a phase behind the other two, in the same launch.
KernelSpec gemm_lora_add(const CatalogOptions& options) {
  const Expr x = input("x", options.dtype, {lora_rows(options), options.k});
  const Expr w = input("w", options.dtype, {options.n, options.k}), a = input("a", options.dtype, {options.rank, options.k});
  const Expr b = input("b", options.dtype, {options.n, options.rank});
  return KernelSpec("gemm_lora_add").output("y", options.dtype, matmul_nt(x, w) + matmul_nt(cast(options.dtype, matmul_nt(x, a)), b));
}

} // namespace kiln
