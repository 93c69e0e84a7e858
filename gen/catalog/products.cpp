// Products of the catalogue: their operands, and what is done with the sums.
#include "gen/catalog/entries.h"
#include "gen/error.h"
#include "gen/spec/math.h"
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr double min_row_absmax = 1e-12; // keeps the scale of an all-zero row above zero

Dim rows_of(const CatalogOptions& options) { return dynamic("m", 1, options.m); }
Expr matrix_a(const CatalogOptions& options) { return input("a", options.dtype, {rows_of(options), options.k}); }
Layout layout_of(const CatalogOptions& options) { return options.preshuffled ? Layout::preshuffled : Layout::contiguous; }
Expr matrix_b(const CatalogOptions& options, std::int64_t n) { return input("b", options.dtype, {n, options.k}, layout_of(options)); }
bool quantised(const CatalogOptions& options) { return is_fp8(options.dtype) || options.dtype == i8; }
// What a product of quantised numbers is stored as: f16. Others keep their type.
DType result_type(const CatalogOptions& options) { return quantised(options) ? f16 : options.dtype; }

// Scales of `groups` parts of each row of a.
Expr scale_of_a(DType type, std::int64_t groups, const CatalogOptions& options) {
  if (options.transposed) return transpose(input("a_scale", type, {groups, rows_of(options)}));
  return input("a_scale", type, {rows_of(options), groups});
}

// Quantised operands have one scale a row of a and one a row of b; others none.
Expr scaled_product(const CatalogOptions& options) {
  const Expr product = matmul_nt(matrix_a(options), matrix_b(options, options.n));
  if (!quantised(options)) return product;
  return product * input("a_scale", f32, {rows_of(options), 1}) * input("b_scale", f32, {options.n});
}

void require_16_bit_a(const char* subject, const CatalogOptions& options, const char* what) {
  if (options.dtype != f16 && options.dtype != bf16)
    throw UserError(subject, fmt::format("dtype is {}", to_string(options.dtype)), fmt::format("use f16 or bf16, the type of a{}", what));
}

} // namespace

KernelSpec gemm(const CatalogOptions& options) { return KernelSpec("gemm").output("c", result_type(options), scaled_product(options)); }

KernelSpec gemm_quant(const CatalogOptions& options) {
  return KernelSpec("gemm_quant").output("q", options.fp8, scaled_product(options) / input("scale", f32, {}));
}

KernelSpec router(const CatalogOptions& options) {
  return routed("router", scaled_product(options), input("bias", f32, {options.n}), options);
}

KernelSpec gemm_bias(const CatalogOptions& options) {
  const DType type = result_type(options);
  return KernelSpec("gemm_bias").output("c", type, scaled_product(options) + input("bias", type, {options.n}));
}

KernelSpec gemm_residual(const CatalogOptions& options) {
  const DType type = result_type(options);
  const Expr residual = input("residual", type, {rows_of(options), options.n});
  return KernelSpec("gemm_residual")
      .output("c", type, scaled_product(options) + residual, {.in_place_of = options.in_place ? "residual" : ""});
}

// One scale a row, from all of its columns: a phase of its own behind the product, in the same launch.
KernelSpec gemm_gelu_residual_row_quant(const CatalogOptions& options) {
  const DType type = result_type(options);
  const Expr bias = input("bias", type, {options.n}), residual = input("residual", type, {rows_of(options), options.n});
  const Expr h = gelu_tanh(scaled_product(options) + bias) + residual;
  const Expr scale = max(row_absmax(h), min_row_absmax) / max_finite(options.fp8);
  return KernelSpec("gemm_gelu_residual_row_quant").output("scale", f32, scale).output("q", options.fp8, h / scale);
}

KernelSpec gemm_swiglu_quant(const CatalogOptions& options) {
  const Expr both = matmul_nt(matrix_a(options), matrix_b(options, 2 * options.n));
  const auto half = [&](std::int64_t first) {
    const Expr part = columns(both, first, options.n);
    // One scale for a and one for b, so that gate and partner share it.
    return quantised(options) ? part * (input("a_scale", f32, {}) * input("b_scale", f32, {})) : part;
  };
  return KernelSpec("gemm_swiglu_quant").output("q", options.fp8, silu(half(0)) * half(options.n) / input("scale", f32, {}));
}

KernelSpec gemm_w8a16(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_w8a16'", options, "; b is fp8");
  const Expr b = input("b", options.fp8, {options.n, options.k}, layout_of(options));
  return KernelSpec("gemm_w8a16").output("c", options.dtype, matmul_nt(matrix_a(options), b) * input("b_scale", f32, {options.n}));
}

KernelSpec gemm_w4a16(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_w4a16'", options, " and of the scales; b has 4-bit numbers");
  if (options.k % 2 || options.group < 1)
    throw UserError("catalogue entry 'gemm_w4a16'", fmt::format("k is {} and group {}", options.k, options.group),
                    "use an even k and a multiple of 32");
  const Expr b = input("b", u8, {options.n, options.k / 2}, layout_of(options));
  const std::int64_t groups = group_count(options.k, options.group);
  if (options.packed_zeros && options.n % 8)
    throw UserError("catalogue entry 'gemm_w4a16'", fmt::format("n is {} and packed_zeros is set", options.n),
                    "use a multiple of 8, the zero points of a word");
  const Expr scale = input("scale", options.dtype, {options.n, groups});
  const Expr zero = options.packed_zeros ? input("zero", i32, {groups, options.n / 8}) : input("zero", u8, {options.n, groups});
  return KernelSpec("gemm_w4a16").output("c", options.dtype, matmul_nt_w4(matrix_a(options), b, scale, zero, options.group));
}

KernelSpec gemm_w_mxfp4(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_w_mxfp4'", options, "; b is e2m1 with e8m0 scales");
  const Expr b = input("b", e2m1, {options.n, options.k}, layout_of(options));
  const Expr scale = input("scale", e8m0, {options.n, group_count(options.k, mx_block)});
  return KernelSpec("gemm_w_mxfp4").output("c", options.dtype, matmul_nt_mx(matrix_a(options), b, scale));
}

KernelSpec gemm_mx(const CatalogOptions& options) {
  if (options.dtype != f16 && options.dtype != bf16 && options.dtype != f32)
    throw UserError("catalogue entry 'gemm_mx'", fmt::format("dtype is {}", to_string(options.dtype)),
                    "use f16, bf16 or f32, the type of c; mx is that of a, and weights that of b");
  const DType weights = options.weights == f32 ? options.mx : options.weights;
  const std::int64_t blocks = group_count(options.k, mx_block);
  const Expr a = input("a", options.mx, {rows_of(options), options.k}), a_scale = scale_of_a(e8m0, blocks, options);
  const Expr b = input("b", weights, {options.n, options.k}, layout_of(options)), b_scale = input("b_scale", e8m0, {options.n, blocks});
  return KernelSpec("gemm_mx").output("c", options.dtype, matmul_nt_mx_mx(a, b, a_scale, b_scale));
}

KernelSpec gemm_dynamic_quant(const CatalogOptions& options) {
  require_16_bit_a("catalogue entry 'gemm_dynamic_quant'", options, "; its rows are quantised to fp8, and b is fp8");
  const Expr b = input("b", options.fp8, {options.n, options.k}, layout_of(options));
  const Expr product = matmul_nt_quantised(matrix_a(options), b);
  return KernelSpec("gemm_dynamic_quant").output("c", options.dtype, product * input("b_scale", f32, {options.n}));
}

// Operands of 8 bits: of `dtype` if that has as many, else of the quantised type, with results of `dtype`.
KernelSpec gemm_block_scaled(const CatalogOptions& options) {
  const DType type = quantised(options) ? options.dtype : options.fp8;
  const std::int64_t groups = group_count(options.k, scale_block);
  const Expr a = input("a", type, {rows_of(options), options.k}), b = input("b", type, {options.n, options.k}, layout_of(options));
  const Expr a_scale = scale_of_a(f32, groups, options);
  const Expr b_scale = input("b_scale", f32, {group_count(options.n, scale_block), groups});
  return KernelSpec("gemm_block_scaled").output("c", result_type(options), matmul_nt_scaled(a, b, a_scale, b_scale));
}

} // namespace kiln
