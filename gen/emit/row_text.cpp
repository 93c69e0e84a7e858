// Row text: pointers, strides and offsets of rows.
#include "gen/emit/row_text.h"
#include "gen/spec/names.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

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

RowArguments row_arguments(const Body& body, const TensorPlan& t) {
  const std::string pointer = t.in_place_of.empty() ? t.name : t.in_place_of;
  const TensorPlan& memory = t.in_place_of.empty() ? t : body.tensor(t.in_place_of);
  const bool strided = memory.layout == Layout::strided && memory.stride_dim >= 0;
  if (!body.general_rows() && strided) return {pointer, fmt::format(", {}_stride", pointer)};
  if (t.covers_rows() && !strided) return {pointer, ""};
  const std::int64_t inner = t.extent == Extent::element ? body.cols : t.extent == Extent::group ? group_count(body.cols, t.group) : 1;
  std::string offset, scale = fmt::format("{}ull", inner);
  for (std::size_t d = body.outer_dims.size(); d-- > 0;) {
    if (!t.outer[d]) continue;
    const bool by_stride = strided && static_cast<int>(d) == memory.stride_dim;
    offset += fmt::format("{}{} * {}", offset.empty() ? "" : " + ", outer_index(body, d),
                          by_stride ? fmt::format("static_cast<u64>({}_stride)", pointer) : scale);
    scale += " * " + size_text({&body.outer_dims[d], 1});
  }
  return {offset.empty() ? pointer : fmt::format("{} + ({})", pointer, offset), ", 0"};
}

std::string row_stream(const Body& body, const TensorPlan& t) {
  const bool varies = std::ranges::find(t.outer, true) != t.outer.end();
  if (!varies && !t.covers_rows()) return fmt::format("row.columns({})", t.name);
  return fmt::format("row.full({})", row_arguments(body, t).text());
}

} // namespace kiln
