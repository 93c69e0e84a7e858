// Row text: pointers, strides and offsets of rows.
#include "gen/emit/row_text.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tuple>

namespace kiln {

std::string size_text(std::span<const Shape> dims) {
  std::vector<std::string> factors;
  std::int64_t known = 1;
  for (const Shape& merged : dims)
    for (const Dim& dim : merged) {
      if (dim.is_dynamic()) factors.push_back(dim.name());
      else known *= dim.size();
    }
  if (known != 1 || factors.empty()) factors.push_back(fmt::format("{}u", known));
  return fmt::format("{}", fmt::join(factors, " * "));
}

std::string outer_index(const Body& body, std::size_t d) { return unused_name(fmt::format("index{}", d), body.names); }

std::string beginning(const TensorPlan& t) { return t.slice.first ? fmt::format("{} + {}ull", t.memory(), t.slice.first) : t.memory(); }

namespace {

std::string dim_text(const Dim& dim) { return dim.is_dynamic() ? dim.name() : fmt::format("{}u", dim.size()); }

std::int64_t columns_in_memory(const Body& body, const TensorPlan& t) {
  if (t.extent == Extent::group) return group_count(body.cols, t.group);
  if (t.extent == Extent::ranked) return t.group;
  return t.extent != Extent::element ? 1 : t.columns ? t.columns : body.cols;
}

// The same as device text; the size of a dimension that is known only at launch stands in its argument.
std::string columns_text(const Body& body, const TensorPlan& t) {
  const std::int64_t columns = columns_in_memory(body, t);
  return columns ? fmt::format("{}ull", columns) : fmt::format("static_cast<u64>({})", body.space.back().name());
}

// The row's index in entry `d` of outer_dims, of which a body without general rows has one at most.
std::string index_text(const Body& body, std::size_t d) { return body.general_rows() ? outer_index(body, d) : "row.index()"; }

// The elements between the indices of a tensor's first dimension.
std::string stride_text(const TensorPlan& t) {
  return t.slice.pitch ? fmt::format("{}ull", t.slice.pitch) : fmt::format("static_cast<u64>({}_stride)", t.memory());
}

// Elements from the first one of `memory` to the row's, in terms of outer indices; empty for 0.
std::string offset_of_row(const Body& body, const TensorPlan& t, const TensorPlan& memory) {
  const bool strided = memory.layout == Layout::strided && memory.stride_dim >= 0;
  std::string offset, scale = columns_text(body, t);
  for (std::size_t d = body.outer_dims.size(); d-- > 0;) {
    if (!t.outer[d]) continue;
    const bool by_stride = strided && static_cast<int>(d) == memory.stride_dim;
    offset += fmt::format("{}{} * {}", offset.empty() ? "" : " + ", index_text(body, d), by_stride ? stride_text(memory) : scale);
    scale += " * " + size_text({&body.outer_dims[d], 1});
  }
  return offset;
}

// The same where the heads, the last of the outer dims, come first in memory.
std::string offset_in_order_of_heads(const Body& body, const TensorPlan& t) {
  const Shape heads(body.space.end() - 2, body.space.end() - 1), before(body.space.begin(), body.space.end() - 2);
  return fmt::format("(static_cast<u64>(row.index() % ({0})) * ({1}) + row.index() / ({0})) * {2}", size_text({&heads, 1}),
                     size_text({&before, 1}), columns_text(body, t));
}

bool is_written(const Body& body, const TensorPlan& t) {
  return std::ranges::any_of(body.tensors, [&](const TensorPlan& output) { return output.in_place_of == t.name; });
}

std::string column_map(const View& view) {
  std::string fields;
  for (const auto& [name, number, none] : {std::tuple("partner", view.partner, 0), std::tuple("tile", view.tile, 0),
                                           std::tuple("repeat", view.repeat, 1), std::tuple("shift", view.shift, 0)})
    if (number != none) fields += fmt::format("{}.{} = {}", fields.empty() ? "" : ", ", name, number);
  return fmt::format("ColumnMap{{{}}}", fields);
}

} // namespace

std::string outer_indices(const Body& body) {
  if (!body.general_rows()) return "";
  std::string text, rest = "row.index()";
  for (std::size_t d = body.outer_dims.size(); d-- > 0;) {
    const std::string size = size_text({&body.outer_dims[d], 1});
    const std::string index = outer_index(body, d), above = unused_name(fmt::format("above{}", d), body.names);
    text += d ? fmt::format("  [[maybe_unused]] const u32 {0} = {2} % ({3}), {1} = {2} / ({3});\n", index, above, rest, size)
              : fmt::format("  [[maybe_unused]] const u32 {} = {};\n", index, rest);
    rest = above;
  }
  return text;
}

std::string named_row(const Body& body, const std::string& index) { return unused_name("row_of_" + index, body.names); }

RowArguments named_row_arguments(const Body& body, const TensorPlan& memory, const std::string& row) {
  std::string offset, scale = fmt::format("{}ull", columns_in_memory(body, memory));
  for (std::size_t d = body.outer_dims.size(); d-- > 0;) {
    if (!memory.outer[d]) continue;
    offset += fmt::format(" + {} * {}", index_text(body, d), scale);
    scale += " * " + size_text({&body.outer_dims[d], 1});
  }
  if (memory.layout == Layout::strided) scale = stride_text(memory);
  return {fmt::format("{} + ({} * {}{})", beginning(memory), row, scale, offset), ", 0"};
}

std::string gathered_row(const Body& body, const View& view) {
  const std::string row = named_row(body, view.index);
  if (!view.checked) return row + ".row";
  return fmt::format("{}.clamped_to({})", row, dim_text(body.tensor(view.tensor).rows));
}

std::string scatters(const Body& body, const TensorPlan& output) {
  const std::string row = named_row(body, output.row_index);
  if (!output.checked) return row + ".is_named";
  return fmt::format("{}.is_named_below({})", row, dim_text(body.tensor(output.in_place_of).rows));
}

RowArguments row_arguments(const Body& body, const TensorPlan& t) {
  if (!t.row_index.empty()) return named_row_arguments(body, body.tensor(t.in_place_of), named_row(body, t.row_index) + ".row");
  const TensorPlan& memory = t.in_place_of.empty() ? t : body.tensor(t.in_place_of);
  const std::string pointer = beginning(memory);
  const bool strided = memory.layout == Layout::strided && memory.stride_dim >= 0;
  if (!body.general_rows() && strided) return {pointer, ", " + (memory.slice.pitch ? stride_text(memory) : memory.memory() + "_stride")};
  if (t.heads_first) return {fmt::format("{} + ({})", pointer, offset_in_order_of_heads(body, t)), ", 0"};
  if (t.covers_rows() && !strided) return {pointer, ""};
  const std::string offset = offset_of_row(body, t, memory);
  return {offset.empty() ? pointer : fmt::format("{} + ({})", pointer, offset), ", 0"};
}

std::string row_stream(const Body& body, const TensorPlan& t) {
  if (!t.row_index.empty()) return fmt::format("row.scattered({}, {})", row_arguments(body, t).pointer, scatters(body, t));
  const bool varies = std::ranges::find(t.outer, true) != t.outer.end();
  if (!varies && !t.covers_rows()) return fmt::format("row.columns({})", beginning(t));
  return fmt::format("row.full({})", row_arguments(body, t).text());
}

std::string view_stream(const Body& body, const Expr& expr) {
  const View view = *view_of(expr);
  const TensorPlan& t = body.tensor(view.tensor);
  if (!view.index.empty())
    return fmt::format("row.view<{}, {}>({}, {}.is_named)", column_map(view), is_written(body, t) ? "Rows::own" : "Rows::named",
                       named_row_arguments(body, t, gathered_row(body, view)).pointer, named_row(body, view.index));
  const std::string offset = offset_of_row(body, t, t);
  return fmt::format("row.view<{}, Rows::all>({}{})", column_map(view), beginning(t), offset.empty() ? "" : " + (" + offset + ")");
}

} // namespace kiln
