// The catalogue's registry: one line an entry.
#include "gen/catalog/catalog.h"
#include "gen/catalog/entries.h"
#include "gen/error.h"
#include "gen/spec/names.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>
#include <vector>

namespace kiln {
namespace {

constexpr CatalogEntry entries[] = {
    {"add_rmsnorm_quant", "residual add, RMS norm, fp8 with a given scale (or dynamic_scale)", catalog_entries::add_rmsnorm_quant},
    {"add_rmsnorm_dynamic_quant", "residual add, RMS norm, fp8 with one scale a token", catalog_entries::add_rmsnorm_dynamic_quant},
    {"rmsnorm", "RMS norm with a weight a column", catalog_entries::rmsnorm},
    {"layernorm", "layer norm with weight and bias a column", catalog_entries::layernorm},
    {"softmax", "softmax of each row", catalog_entries::softmax},
    {"swiglu_quant", "silu(gate) * up, fp8 with a given scale", catalog_entries::swiglu_quant},
    {"gelu_mul", "gelu(gate) * up, gelu by erf", catalog_entries::gelu_mul},
    {"silu_mul", "silu(gate) * up", catalog_entries::silu_mul},
    {"add_bias_gelu", "gelu(x + bias), gelu by tanh", catalog_entries::add_bias_gelu},
    {"per_token_quant", "fp8 with one scale a row", catalog_entries::per_token_quant},
    {"group_quant", "fp8 with one scale for every `group` columns of a row", catalog_entries::group_quant},
    {"dequant", "fp8 times one scale a row", catalog_entries::dequant},
    {"group_dequant", "fp8 times one scale for every `group` columns of a row", catalog_entries::group_dequant},
    {"scaled_add", "x + alpha * y, alpha given at launch", catalog_entries::scaled_add},
    {"cast", "rounding to fp8 without a scale", catalog_entries::cast_quant},
    {"gemm", "skinny a x b^T; fp8 and i8 with a scale a row of each", catalog_entries::gemm, true},
    {"gemm_bias", "gemm + bias", catalog_entries::gemm_bias, true},
    {"gemm_residual", "gemm + residual", catalog_entries::gemm_residual, true},
    {"gemm_swiglu_quant", "silu(gate) * up of one product's halves, fp8 with a given scale", catalog_entries::gemm_swiglu_quant, true},
    {"gemm_w8a16", "f16 or bf16 a, fp8 b with a scale a row", catalog_entries::gemm_w8a16, true},
    {"gemm_w4a16", "f16 or bf16 a, 4-bit b with a scale and a zero point for every `group` elements of k", catalog_entries::gemm_w4a16, true},
    {"gemm_block_scaled", "fp8 (or i8) with scales of 1x128 of a and 128x128 of b", catalog_entries::gemm_block_scaled, true},
};

void require_options(std::string_view name, bool is_gemm, const CatalogOptions& options) {
  const auto subject = fmt::format("catalogue entry '{}'", name);
  if (is_gemm) {
    for (const auto& [what, size, most] : {std::tuple{"m", options.m, 64ll}, std::tuple{"n", options.n, 1ll << 24}, std::tuple{"k", options.k, 1ll << 24}})
      if (size < 1 || size > most) throw UserError(subject, fmt::format("{} is {}", what, size), fmt::format("use 1 to {}", most));
    if (!is_float(options.dtype) && options.dtype != i8)
      throw UserError(subject, fmt::format("dtype is {}", to_string(options.dtype)), "use f16, bf16, an fp8 or i8");
    return;
  }
  if (options.cols < 1 || options.cols > max_dim_size)
    throw UserError(subject, fmt::format("cols is {}", options.cols), fmt::format("use 1 to {}", max_dim_size));
  if (options.dtype != f32 && options.dtype != f16 && options.dtype != bf16)
    throw UserError(subject, fmt::format("dtype is {}", to_string(options.dtype)), "use f32, f16 or bf16");
  if (!is_fp8(options.fp8))
    throw UserError(subject, fmt::format("fp8 is {}", to_string(options.fp8)), "use e4m3fn, e4m3fnuz, e5m2 or e5m2fnuz");
}

} // namespace

std::span<const CatalogEntry> catalog() { return entries; }

KernelSpec catalog_spec(std::string_view name, const CatalogOptions& options) {
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : entries) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    require_options(name, entry.is_gemm, options);
    return entry.build(options);
  }
  const std::string_view nearest = nearest_name(name, names);
  throw UserError(fmt::format("catalogue entry '{}'", name), "there is none of this name",
                  nearest.empty() ? fmt::format("use one of {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'?", nearest));
}

} // namespace kiln
