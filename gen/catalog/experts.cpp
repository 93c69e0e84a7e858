// Experts of the catalogue: pairs of a token and an expert sorted, and their products.
#include "gen/catalog/entries.h"
#include "gen/spec/math.h"
#include <utility>

namespace kiln {
namespace {

struct ExpertInputs {
  Dim tokens;
  Expr order, offsets;
  DType result; // what products are stored as
  explicit ExpertInputs(const CatalogOptions& options)
      : tokens(dynamic("m", 1, options.m)), order(input("order", i32, {tokens, options.top})),
        offsets(input("offsets", i32, {options.experts + 1})), result(is_fp8(options.dtype) || options.dtype == i8 ? bf16 : options.dtype) {
  }
};

// a [..., k] with a matrix [n, k] an expert. Operands of 8 bits have scales of blocks; MXFP4 weights have their own.
Expr product_of_all(const CatalogOptions& options, Shape rows, std::int64_t n) {
  const auto with_last = [](Shape shape, Dim last) { return shape.push_back(std::move(last)), shape; };
  const Expr a = input("a", options.dtype, with_last(rows, options.k));
  const bool mx = options.weights == e2m1;
  const Expr b = input("b", mx ? e2m1 : options.dtype, {options.experts, n, options.k});
  if (mx) return matmul_nt_mx(a, b, input("b_scale", e8m0, {options.experts, n, group_count(options.k, mx_block)}));
  if (!is_fp8(options.dtype) && options.dtype != i8) return matmul_nt(a, b);
  const std::int64_t groups = group_count(options.k, scale_block);
  return matmul_nt_scaled(a, b, input("a_scale", f32, with_last(std::move(rows), groups)),
                          input("b_scale", f32, {options.experts, group_count(n, scale_block), groups}));
}

} // namespace

KernelSpec moe_sort(const CatalogOptions& options) {
  const Expr experts = input("experts", i32, {dynamic("tokens"), options.top});
  return KernelSpec("moe_sort")
      .output("order", i32, expert_order(experts, options.experts))
      .output("offsets", i32, expert_offsets(experts, options.experts));
}

KernelSpec grouped_gemm(const CatalogOptions& options) {
  const ExpertInputs in(options);
  return KernelSpec("grouped_gemm")
      .output("y", in.result, by_expert(product_of_all(options, {in.tokens}, options.n), in.order, in.offsets));
}

KernelSpec grouped_gemm_swiglu(const CatalogOptions& options) {
  const ExpertInputs in(options);
  const Expr both = by_expert(product_of_all(options, {in.tokens}, 2 * options.n), in.order, in.offsets);
  return KernelSpec("grouped_gemm_swiglu").output("y", in.result, silu(columns(both, 0, options.n)) * columns(both, options.n, options.n));
}

KernelSpec grouped_gemm_sum(const CatalogOptions& options) {
  const ExpertInputs in(options);
  const Expr weights = input("weights", f32, {in.tokens, options.top});
  return KernelSpec("grouped_gemm_sum")
      .output("y", in.result, sum_of_experts(product_of_all(options, {in.tokens, options.top}, options.n), in.order, in.offsets, weights));
}

} // namespace kiln
