// Whole rows: groups of columns in tiles, and rows behind all tiles.
#include "gen/plan/phases/whole_rows.h"
#include "gen/error.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::int64_t max_cols_at_end = 1024; // 16 a lane
// Groups of columns that tiles have whole: as wide as the widest vector of a lane at least, and two columns a lane of a wave at most.
constexpr std::int64_t min_group = 8, max_group = 128;
// Sums of a tile, of all rows and products. A plan is for any target: of the smallest LDS, less what else a kernel keeps there.
constexpr std::int64_t max_in_tile = (machine::min_lds_bytes() - 4096) / 4;

bool is_of_rows(Op op) { return is_reduction(op) || op == Op::ungroup || needs_one_wave(info(op).kind); }
bool is_of_groups(Op op) { return info(op).kind == OpKind::group_reduce || info(op).kind == OpKind::ungroup; }

} // namespace

std::int64_t bound_of_rows(const Product& p) {
  const Dim& m = p.a.memory.shape()[0];
  return m.is_dynamic() ? *m.max() : m.size();
}

int group_in_tile(const Body& epilogue, std::span<const Product> products, std::int64_t rows) {
  const auto is_of_tile = [](const Value& v) { return !is_of_rows(v.expr.op()) || is_of_groups(v.expr.op()); };
  const Product& first = products.front();
  const std::int64_t count = std::ssize(products);
  // MX operands of 8 bits load two words of every row in a step: wide tiles leave no registers for the sums of many rows.
  const bool loads_much = first.a.encoding == Encoding::mx && first.b.bits() == 8 && rows > 16;
  const std::int64_t widest = loads_much ? max_group / count : max_group, cols = epilogue.space.back().size();
  const auto is_whole = [&](std::int64_t group) {
    return group >= min_group && group <= widest && cols % group == 0 && rows * count * group <= max_in_tile;
  };
  const auto is_stored = [](const TensorPlan& t) { return !t.output || t.extent == Extent::element || t.extent == Extent::group; };
  if (!std::ranges::all_of(epilogue.group_sizes, is_whole)) return 0;
  if (!std::ranges::all_of(epilogue.values, is_of_tile) || !std::ranges::all_of(epilogue.tensors, is_stored)) return 0;
  if (!epilogue.group_sizes.empty()) return static_cast<int>(std::ranges::max(epilogue.group_sizes));
  const bool shares_bytes = std::ranges::any_of(epilogue.tensors, [](const TensorPlan& t) { return is_packed(t.dtype); });
  return shares_bytes ? static_cast<int>(min_group) : 0;
}

bool reduces_rows(const Body& epilogue, std::span<const Product> products, std::int64_t rows) {
  if (group_in_tile(epilogue, products, rows) > 0) return false;
  return std::ranges::any_of(epilogue.values, [](const Value& v) { return is_of_rows(v.expr.op()); }) ||
         std::ranges::any_of(epilogue.tensors, [](const TensorPlan& t) { return t.output && t.extent != Extent::element; });
}

bool reduces_long_rows(const Body& epilogue, std::span<const Product> products) {
  const Dim& m = products.front().a.memory.shape()[0];
  const std::int64_t cols = epilogue.space.back().size();
  if (products.front().by_expert() || cols <= max_cols_at_end || (m.is_dynamic() && !m.max())) return false;
  if (!reduces_rows(epilogue, products, bound_of_rows(products.front()))) return false;
  for (const Value& value : epilogue.values)
    if (const OpKind kind = info(value.expr.op()).kind; kind == OpKind::rank || kind == OpKind::pick)
      throw UserError(fmt::format("operation '{}'", info(value.expr.op()).name),
                      fmt::format("it stands in the epilogue of a matrix product, whose rows have {} columns", cols),
                      fmt::format("rank in a kernel of its own: a wave ranks the {} columns of a product at most", max_cols_at_end));
  return std::ranges::any_of(epilogue.values, [](const Value& v) { return is_of_rows(v.expr.op()); });
}

} // namespace kiln
