// Row text: how emitted kernels address tensors of a body that is laid out in rows.
#pragma once
#include "gen/plan/body.h"
#include <span>
#include <string>

namespace kiln {

// How the verbs of Row take a tensor: "x", and behind it ", x_stride" or ", 0" or nothing. For a tensor that varies with some
// outer dims only, the pointer is "x + (offset of this row)".
struct RowArguments {
  std::string pointer, rest;
  std::string text() const { return pointer + rest; }
};
std::string beginning(const TensorPlan& tensor); // the address of its first element: "x", or of a slice "x + 128ull"
RowArguments row_arguments(const Body& body, const TensorPlan& tensor);

std::string row_stream(const Body& body, const TensorPlan& tensor); // "row.full(x)", "row.columns(x)", "row.scattered(...)"
std::string view_stream(const Body& body, const Expr& view);        // "row.view<ColumnMap{...}>(table + ..., true)"

// For tensors whose rows an index names. The variable that says which row, once it is looked up.
std::string named_row(const Body& body, const std::string& index);
RowArguments named_row_arguments(const Body& body, const TensorPlan& memory, const std::string& row);
// The row of a gather, "row_of_ids.row", or brought to the last one; and whether the row of a scatter is written.
std::string gathered_row(const Body& body, const View& view);
std::string scatters(const Body& body, const TensorPlan& output);

std::string size_text(std::span<const Shape> dims); // their product: "rows * 32u"

// Lines that find the indices in all entries of outer_dims from that of the row; nothing for a body without general rows.
std::string outer_indices(const Body& body);

// The variable for the index in entry `d` of outer_dims.
std::string outer_index(const Body& body, std::size_t d);

} // namespace kiln
