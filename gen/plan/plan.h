// Plan: what a spec means for a kernel: its iteration space, what every value varies with, and in which pass it can be had.
#pragma once
#include "gen/plan/product.h"
#include "gen/spec/spec.h"
#include "gen/plan/target.h"
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

enum class Family : std::uint8_t {
  elementwise, // one flat run of elements: every tensor has the full shape and is contiguous, or is one value for all
  rowwise,     // [rows, cols] with row reductions, broadcasts over rows or columns, groups, or leading strides
  skinny_gemm, // few rows times one or two matrices, and an elementwise epilogue
};
std::string_view to_string(Family family);

// What a value varies with. Within `group` elements of a row a group value is the same; a value with extent below
// `element` is one number a lane, an `element` value is a vector of them.
enum class Extent : std::uint8_t { scalar, row, group, element };
std::string_view to_string(Extent extent);

struct Value {
  Expr expr;
  Extent extent = Extent::scalar;
  // Row reductions that must be complete before it can be computed, counted in sequence: 0 for what depends on inputs
  // only, 1 for what needs a reduction of such, ... A value of level n with extent `element` is computed in pass n.
  int level = 0;
  std::int64_t group = 0; // Extent::group: elements of a row within which it is the same
  int uses = 0;           // operands and outputs that refer to it
};

// Where an input or output lies relative to the iteration space.
struct TensorPlan {
  std::string name = {};
  DType dtype = f32;
  Extent extent = Extent::element;
  std::int64_t group = 0;       // for Extent::group
  std::vector<bool> outer = {}; // for each entry of Plan::outer_dims: whether the tensor varies with it
  Layout layout = Layout::contiguous;
  int stride_dim = -1; // strided: the entry of Plan::outer_dims that its stride belongs to
  bool output = false;
  std::string in_place_of = {}; // outputs
  bool covers_rows() const;     // varies with all of them
};

struct GemmPlan;

struct Plan {
  KernelSpec spec; // equal subexpressions merged
  Family family = Family::elementwise;
  // Outer dims of the space, merged where every tensor treats them alike (each entry lists the dims of the spec that it
  // stands for). rows = the product of all; elementwise: one entry, all dims.
  std::vector<Shape> outer_dims = {};
  std::int64_t cols = 0;                           // elementwise: 0
  int passes = 1;                                  // over the row: one more than the reductions in sequence
  std::int64_t group = 0;                          // smallest group size that occurs, 0 without groups
  std::vector<Value> values = {};                  // operands before users
  std::vector<TensorPlan> tensors = {};            // inputs in order of first use, then outputs
  std::unordered_map<const Node*, int> index = {}; // of values
  // Family::skinny_gemm: what is multiplied. The fields above, `spec` too, then describe the epilogue, which has the products
  // as inputs.
  std::shared_ptr<const GemmPlan> gemm = nullptr;

  const Value& value(const Expr& expr) const { return values[static_cast<std::size_t>(index.at(&expr.node()))]; }
  const TensorPlan& tensor(std::string_view name) const;
  bool general_rows() const { return outer_dims.size() > 1; } // some tensor varies with some outer dims only
};

// What is multiplied: [m, k] by `products`, each [n, k] out of a matrix, to [m, n].
struct GemmPlan {
  SplitSpec split;
  Expr a;                // input [m, k]
  Dim m;                 // a number, or a run-time size with an upper bound
  std::int64_t rows = 0; // that bound, 1 to 64
  std::int64_t n = 0, k = 0;
  DType a_type = f32, b_type = f32;
  int b_bits = 0;         // of an element of b: 4 in u8 of matmul_nt_w4
  std::int64_t group = 0; // elements of k with one scale; 0 without
  bool preshuffled = false;
  const std::vector<Product>& products() const { return split.products; }
};

// Validates, merges equal subexpressions, and finds the iteration space.
// Throws UserError for what no family can compute, and for fp8 types that are not the target's own.
Plan make_plan(const KernelSpec& spec, const Target& target);
std::string to_text(const Plan& plan);

} // namespace kiln
