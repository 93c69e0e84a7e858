// The catalogue: ready specs of the kernels that inference engines ask for.
#pragma once
#include "gen/spec.h"
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln {

struct CatalogOptions {
  std::int64_t cols = 4096;
  DType dtype = f16;          // of activations and weights: f16, bf16 or f32
  DType fp8 = e4m3fn;         // of quantised values; target.fp8() is the native one
  bool dynamic_scale = false; // add_rmsnorm_quant: one scale a token, computed and written, in place of a given one
  bool in_place = false;      // add_rmsnorm_quant: the new residual overwrites the old
  std::int64_t group = 128;   // group_quant, group_dequant: elements a scale
};

// In every entry rows are a run-time size, `dynamic("rows")`, and columns are options.cols.
struct CatalogEntry {
  std::string_view name;
  std::string_view doc;
  KernelSpec (*build)(const CatalogOptions& options);
};

std::span<const CatalogEntry> catalog();

// The spec of the entry `name`. Throws UserError on an unknown name and on options that make no kernel.
KernelSpec catalog_spec(std::string_view name, const CatalogOptions& options);

} // namespace kiln
