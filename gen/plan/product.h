// Products: the matrix products of a spec, and what is left of the spec without them, the epilogue.
#pragma once
#include "gen/error.h"
#include "gen/spec/graph.h"
#include "templates/gemm_config.h"
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// Columns [first, first + n) of a x b^T, as the epilogue's input `placeholder`.
struct Product {
  Op op = Op::matmul_nt;
  Expr a, b; // inputs: [m, k] and [n of b, k], or [n of b, k/2] of 4-bit integers
  std::vector<Expr> scales =
      {}; // inputs: a_scale and b_scale, scale and zero of 4-bit integers, scale of MX weights, or weight, squares and scale of a norm
  std::int64_t group = 0;         // elements of k with one scale; 0 without
  float epsilon = 0;              // of a norm
  bool a_scales_by_group = false; // a_scale lies as [groups, m]
  std::int64_t first = 0, n = 0;
  std::string placeholder; // f32 [m, n], a name that the spec does not use
  // With a matrix for each expert: inputs order and offsets, and of a sum the weights of the pairs; else empty.
  std::vector<Expr> sorted = {};
  int line = 0; // of the spec's text, as Node::line
  std::int64_t k() const { return a.shape().back().size(); }
  bool by_expert() const { return !sorted.empty(); }
  bool sums_experts() const { return sorted.size() > 2; }
  std::int64_t experts() const { return by_expert() ? b.shape()[0].size() : 0; }
  std::int64_t rows_of_b() const { return b.shape()[b.shape().size() - 2].size(); }            // of an expert
  std::int64_t top() const { return sorted.front().shape()[1].size(); }                        // experts of a token
  int b_bits() const { return op == Op::matmul_nt_w4 ? 4 : size_bits(b.dtype()); }             // of an element of b
  Encoding encoding() const;                                                                   // of b
  bool has_a_scale() const { return op == Op::matmul_nt_scaled || op == Op::matmul_nt_mx_mx; } // scales[0]; that of b is scales[1]
  bool is_normed() const { return op == Op::matmul_nt_normed; }
  std::int64_t norm_parts() const { return is_normed() ? scales[1].shape().back().size() : 0; }
  bool packed_zeros() const { return op == Op::matmul_nt_w4 && scales[1].dtype() == i32; } // 8 a word, [groups, rows of b / 8]
  bool preshuffled() const { return b->layout == Layout::preshuffled; }
};

// A spec taken apart: what multiplies, and an elementwise rest.
struct SplitSpec {
  KernelSpec epilogue; // the spec with an input in the place of every product; equal subexpressions merged
  std::vector<Product> products;
};

// The product that the epilogue's input `placeholder` stands for, or nullptr.
const Product* find_product(std::span<const Product> products, std::string_view placeholder);

// Nothing if one kernel can have the products: they share A, and their matrices are of one kind.
std::optional<Refusal> why_unlike(const std::string& kernel, std::span<const Product> products);

// Equal products are merged. Throws UserError when the spec uses the inputs of a product for anything else.
SplitSpec split_products(const SpecGraph& graph);

} // namespace kiln
