// KernelDraft: a kernel while its expressions are built. It gives ggml tensors of any strides, repeated to the kernel's shape, as
// inputs of a KernelSpec, and launches the result. Three iteration spaces:
//   flat      every element by itself. Dense tensors of full size are read as they lie; all others through an index a element.
//   rows      rows of ne[0] elements, for reductions. Tensors whose rows are dense are read through an index a row at most.
//   product   rows of k elements, of which each makes one element of the result; epilogues read tensors of the result's shape.
//   matrix    the same result by matrix instructions: one dense matrix of weights, blocks of up to 64 rows of activations.
// What a space cannot read as it lies is copied by a flat kernel before.
#pragma once
#include "examples/ggml/graph_builder.h"
#include <map>
#include <optional>
#include <set>

namespace kiln_ggml {

enum class Space : std::uint8_t { flat, rows, product, matrix };

// Dimensions of a product's space: result[m, n] of each batch; batches of the weights, each used `repeat` times.
struct ProductSize {
  std::int64_t batch3 = 1, repeat3 = 1, batch2 = 1, repeat2 = 1, m = 1, n = 1, k = 1;
  bool operator==(const ProductSize&) const = default;
  bool has_batches() const { return batch3 * repeat3 * batch2 * repeat2 != 1; }
};

// Whether matrix instructions multiply these: types that have some, and weights that lie dense.
bool has_matrix_form(const ProductSize& size, const TensorView& activations, const TensorView& weights);

class KernelDraft {
public:
  KernelDraft(GraphBuilder& graph, Space space, const Extents& ne);       // flat, or rows
  KernelDraft(GraphBuilder& graph, const ProductSize& size, Space space); // product, or matrix

  Space space() const { return space_; }
  GraphBuilder& graph() { return graph_; }  // for kernels that have to run before
  const Extents& ne() const { return ne_; } // of the result

  // `view` repeated to ne(); in a product's space: to the shape of its result.
  kiln::Expr read(const TensorView& view);
  // Elements of `table` in the order of the flat space; zeros for -1.
  kiln::Expr read(const TensorView& table, const IndexMap& map);
  kiln::Expr number(double value);                      // a run-time scalar, so that unlike values share a kernel
  kiln::Expr columns(const std::vector<float>& values); // rows: one value a column
  template <typename T> void* constant(const std::vector<T>& values) { return graph_.constant(values); }
  kiln::Expr row_of(const void* data, std::int64_t cols); // rows: f32 in device memory, one a column; fewer for tile and repeat
  // One value for each index of ggml's dimension `d` (1 to 3): i32 or f32, in memory one after another. Rows only.
  kiln::Expr along(int d, void* data, kiln::DType dtype);
  // The sums of products of all rows of the activations (ggml's src[1]) with all of the weights (src[0]).
  kiln::Expr product_of(const TensorView& activations, const TensorView& weights);
  kiln::Expr sums_of(const TensorView& parts); // product, without batches: the sums of parts [parts, n, m]

  // Outputs get memory of their own although they might take that of an input: for kernels that read an input at other places too.
  void never_in_place() { in_place_ = false; }
  // Adds an output of ne() elements, or one a row where `value` is; then launch() makes the kernel.
  void write(const TensorView& to, kiln::Expr value);
  // Rows: of value[tokens, heads, cols] each token goes to the row of `to` that its index names.
  void write_rows(const TensorView& to, const TensorView& index, kiln::Expr value);
  void launch(const std::string& name);

private:
  struct Input { // what outputs may not overlap
    std::string name;
    TensorView view;
    bool full; // read at its own place, as outputs are written
  };
  struct Written {
    TensorView to;
    kiln::Expr value;
  };
  struct RowsWritten {
    TensorView to, index;
    kiln::Expr value;
  };
  struct Copy {
    TensorView from, to;
  };
  struct Axes { // a shape, and its sizes at this launch
    kiln::Shape dims;
    std::vector<std::int64_t> sizes;
    void add(const char* name, std::int64_t size);
  };
  Axes row_axes(const Extents& ne, std::int64_t cols) const; // of a tensor in the space of rows
  Axes product_axes(bool repeats, bool m, bool n, std::int64_t cols) const;
  kiln::Expr input(const TensorView& memory, Axes axes, std::int64_t stride, bool full);
  kiln::Expr through(const TensorView& table, std::int64_t cols, std::int64_t unit, Axes index, const IndexMap& map);
  std::optional<kiln::Expr> rows_through(const TensorView& view, std::int64_t cols, const Axes& index, const Extents& ne);
  kiln::Expr rows_of(const TensorView& view);
  kiln::Expr result_of(const TensorView& view);
  kiln::Expr operand(const TensorView& view, const Axes& full, const Axes& index);
  kiln::Dim block_rows() const; // matrix: of a launch
  kiln::Expr matrix_operand(const TensorView& view, bool by_row);
  kiln::Expr matrix_result(const TensorView& view);
  void launch_blocks(const kiln::KernelSpec& spec);
  TensorView dense_copy(const TensorView& view, const Extents& ne);
  std::string meeting_input(const TensorView& to, int& meeting) const;
  void add_scatter(kiln::KernelSpec& spec, const Written& written, const std::string& name);
  void add_rows(kiln::KernelSpec& spec, const RowsWritten& written, const std::string& name);
  void add_output(kiln::KernelSpec& spec, const Written& written, const std::string& name, std::vector<Copy>& copies);
  std::string next(const char* prefix) { return prefix + std::to_string(names_++); }

  GraphBuilder& graph_;
  Space space_;
  Extents ne_;
  ProductSize product_;
  int names_ = 0;
  bool in_place_ = true;
  std::map<std::string, std::int64_t> sizes_; // of the run-time dimensions
  std::vector<kiln::Argument> arguments_;
  std::vector<Input> inputs_;
  std::vector<Written> outputs_;
  std::vector<RowsWritten> rows_written_;
  std::vector<std::pair<TensorView, kiln::Expr>> activations_; // of products, which share them
  std::set<std::string> by_block_;                             // arguments of a launch that have its rows
};

// dst = src, repeated to its shape, through a flat kernel.
void copy(GraphBuilder& graph, const TensorView& from, const TensorView& to);

} // namespace kiln_ggml
