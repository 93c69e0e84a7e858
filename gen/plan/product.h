// Products: the matrix products of a spec, and what is left of the spec without them, the epilogue.
#pragma once
#include "gen/error.h"
#include "gen/spec/graph.h"
#include "gen/spec/product.h"
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// Columns [first, first + n) of a x b^T, as the epilogue's input `placeholder`.
struct Product {
  std::string_view name; // of the operation, as the text form has it
  Operand a, b;          // [m, k] and [n of b, k]
  std::int64_t first = 0, n = 0;
  std::string placeholder; // f32 [m, n], a name that the spec does not use
  // With a matrix for each expert: inputs order and offsets, and of a sum the weights of the pairs; else empty.
  std::vector<Expr> sorted = {};
  int line = 0; // of the spec's text, as Node::line
  std::int64_t k() const { return a.memory.shape().back().size(); }
  bool by_expert() const { return !sorted.empty(); }
  bool sums_experts() const { return sorted.size() > 2; }
  std::int64_t experts() const { return by_expert() ? b.memory.shape()[0].size() : 0; }
  std::int64_t rows_of_b() const { return b.memory.shape()[b.memory.shape().size() - 2].size(); } // of an expert
  std::int64_t top() const { return sorted.front().shape()[1].size(); }                           // experts of a token
  bool is_normed() const { return a.prologue == Prologue::norm; }
  std::int64_t norm_parts() const { return is_normed() ? a.norm[1].shape().back().size() : 0; }
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
