// Body: the values that a kernel computes over its iteration space, and where its tensors lie in that space.
#pragma once
#include "gen/plan/view.h"
#include "gen/spec/stacks.h"
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

// What a value varies with. Within `group` elements of a row a group value is the same; a value with extent below
// `element` is one number a lane, an `element` value is a vector of them. For a `ranked` value lane i of the row has the one of
// rank i.
enum class Extent : std::uint8_t { scalar, row, ranked, group, element };
std::string_view to_string(Extent extent);

// For what takes lanes of a wave in their order: ranks and running sums.
bool needs_one_wave(OpKind kind);
// Rows with more columns have running sums by several waves: predicted times of 1 and 256 rows cross between 2048 and 4096 columns.
inline constexpr std::int64_t max_wave_scan = 2048;

struct Value {
  Expr expr;
  Extent extent = Extent::scalar;
  // Row reductions that must be complete before it can be computed, counted in sequence: 0 for what depends on inputs
  // only, 1 for what needs a reduction of such, ... A value of level n with extent `element` is computed in pass n.
  int level = 0;
  std::int64_t group = 0; // Extent::group: elements of a row within which it is the same; Extent::ranked: how many a row has
  int counts = -1;        // iota over rows: the entry of Body::outer_dims that it counts along
  int uses = 0;           // operands and outputs that compute with it; what only a view or a scatter refers to has none
};

// How an input or output lies in the iteration space.
struct TensorPlan {
  std::string name = {};
  DType dtype = f32;
  Extent extent = Extent::element;
  std::int64_t group = 0;       // for Extent::group and Extent::ranked, as of its value
  std::vector<bool> outer = {}; // for each entry of Body::outer_dims: whether the tensor varies with it
  Layout layout = Layout::contiguous;
  int stride_dim = -1; // strided: the entry of Body::outer_dims that its stride belongs to
  bool output = false;
  // An index names the rows of the input's memory: `outer` says what a row consists of. For an output that scatters: `row_index` is that
  // index, and what lies beyond the rows is left out if `checked`.
  bool named_rows = false;
  std::string row_index = {};
  Dim rows = 1;             // of named_rows: how many there are
  std::int64_t columns = 0; // of its rows in memory, if tile or repeat widen them or an index names them; 0: those of the kernel
  bool checked = false;
  std::string in_place_of = {}; // outputs
  bool heads_first = false;     // outputs: the dimension before the columns comes first in memory
  bool transposed = false;      // outputs of one a group: [groups, rows] in memory
  Slice slice = {};             // where it lies in another tensor
  const std::string& memory() const { return slice.memory.empty() ? name : slice.memory; } // the tensor of the spec
  bool covers_rows() const;                                                                // varies with all of them
};

struct Body {
  std::string kernel; // its name
  std::vector<Output> outputs = {};
  std::vector<Expr> inputs = {}, scalars = {}; // in order of first use
  std::vector<Dim> dynamic_dims = {};
  std::vector<std::int64_t> group_sizes = {};      // of group operations, each once
  std::set<std::string> names = {};                // of inputs, scalars, run-time sizes and outputs
  Shape space = {};                                // the iteration space, at least one dimension
  std::vector<Value> values = {};                  // operands before users
  std::vector<TensorPlan> tensors = {};            // inputs in order of first use, then outputs
  std::unordered_map<const Node*, int> index = {}; // of values
  int passes = 1;                                  // over the row: one more than the reductions in sequence
  // Set by the family that computes it. Outer dims of the space, merged if every tensor treats them alike; each entry lists the
  // dims of the spec that it stands for. A flat body has one entry, all dims, and cols 0.
  std::vector<Shape> outer_dims = {};
  std::int64_t cols = 0;

  int index_of(const Expr& expr) const { return index.at(&expr.node()); }
  const Value& value(int i) const { return values[static_cast<std::size_t>(i)]; }
  const Value& value(const Expr& expr) const { return value(index_of(expr)); }
  const TensorPlan& tensor(std::string_view name) const;
  bool general_rows() const { return outer_dims.size() > 1; } // some tensor varies with some outer dims only
  std::int64_t smallest_group() const;                        // 0 without groups
};

// The body of a spec without products, whose shapes gave `space`; outer_dims and cols are not set.
Body make_body(const SpecGraph& graph, Shape space);

// Whether every tensor has the full shape and is contiguous, or is one value for all, and nothing is reduced.
bool can_be_flat(const Body& body);

void lay_out_flat(Body& body); // one flat run of elements
// [rows, cols]. Throws UserError when the number of columns is known only at launch.
void lay_out_rows(Body& body);
// The same for rows that are read a piece at a time: a number of columns that is known only at launch leaves cols 0.
void lay_out_open_rows(Body& body);

} // namespace kiln
