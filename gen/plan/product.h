// Products: the matrix products of a spec, and what is left of the spec without them, the epilogue.
#pragma once
#include "gen/spec/spec.h"

namespace kiln {

// Columns [first, first + n) of a x b^T, as the epilogue's input `placeholder`.
struct Product {
  Op op = Op::matmul_nt;
  Expr a, b;                     // inputs: [m, k] and [n of b, k], or [n of b, k/2] of 4-bit numbers
  std::vector<Expr> scales = {}; // inputs: a_scale and b_scale, or scale and zero of 4-bit numbers
  std::int64_t group = 0;        // elements of k with one scale; 0 without
  std::int64_t first = 0, n = 0;
  std::string placeholder; // f32 [m, n], a name that the spec has not
};

struct SplitSpec {
  KernelSpec epilogue; // the spec with an input in the place of every product
  std::vector<Product> products;
  const Product* find(std::string_view placeholder) const;
};

bool has_product(const KernelSpec& spec);

// Equal products are merged. Throws UserError when the spec uses the inputs of a product for anything else.
SplitSpec split_products(const KernelSpec& spec);

// Throws UserError for products that no kernel computes: more than two, of different A, sizes that are not known or too
// large
void require_products(const SplitSpec& split);

} // namespace kiln
