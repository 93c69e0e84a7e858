// Cluster: the limits of several workgroups a row, their workspace, and their cost.
#include "gen/families/rowwise/cluster.h"
#include "machine/chip.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// A CU holds four waves a SIMD, of the 128 registers that the ISA contract allows.
constexpr int least_cus = machine::cus_of_smallest_xcd(), waves_a_cu = 4 * simds_per_cu;
constexpr int most_tiles = wave_size; // a lane reads one workgroup's part
constexpr int place_bytes = 8;

std::int64_t workgroups(const Body& body, const RowwiseConfig& c) { return most_rows(body).value_or(0) * c.tiles; }

// Workgroups of 1024 lanes take a CU each; smaller ones share it.
std::int64_t resident_workgroups(const RowwiseConfig& c) { return least_cus * std::int64_t{waves_a_cu / ceil_div(c.threads(), wave_size)}; }

} // namespace

std::int64_t cluster_reductions(const Body& body) {
  return std::ranges::count_if(body.values, [](const Value& v) { return info(v.expr.op()).kind == OpKind::row_reduce; });
}

std::optional<std::int64_t> most_rows(const Body& body) {
  std::int64_t rows = 1;
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) {
      if (dim.is_dynamic() && !dim.max()) return std::nullopt;
      const std::int64_t size = dim.is_dynamic() ? *dim.max() : dim.size();
      if (size > max_dim_size / std::max<std::int64_t>(rows, 1)) return std::nullopt;
      rows *= size;
    }
  return rows;
}

bool is_resident(const Body& body, const RowwiseConfig& c) { return most_rows(body) && workgroups(body, c) <= resident_workgroups(c); }

std::optional<Refusal> why_no_cluster(const Plan& plan, const RowwiseConfig& c) {
  const Body& body = plan.body;
  if (c.threads_per_row < wave_size || c.rows_per_block > 1)
    return refuse_schedule(plan,
                           fmt::format("tiles is {}, and the workgroups of a reduced row have {} lanes a row and {} rows", c.tiles,
                                       c.threads_per_row, c.rows_per_block),
                           "use rows_per_block=1 and 64 threads_per_row or more, or tiles=1");
  if (c.tiles > most_tiles || c.cols >= 1 << 24)
    return refuse_schedule(plan, fmt::format("{} workgroups share a reduced row of {} columns", c.tiles, c.cols),
                           fmt::format("use at most {} tiles, and fewer than 16777216 columns", most_tiles));
  if (!most_rows(body))
    return refuse_schedule(plan, fmt::format("tiles is {}, but the plan reduces rows, and no bound says how many there are", c.tiles),
                           "use tiles=1, or give the rows a bound: dim rows[1..8]");
  if (!is_resident(body, c))
    return refuse_schedule(
        plan,
        fmt::format("up to {} rows of {} workgroups wait for each other, and an XCD has room for {} workgroups of {} lanes",
                    *most_rows(body), c.tiles, resident_workgroups(c), c.threads()),
        "use fewer tiles or threads, or a smaller bound of the rows");
  return {};
}

std::uint32_t cluster_loads(const Body& body) { return 1 + 2 * static_cast<std::uint32_t>(cluster_reductions(body)); }

std::int64_t cluster_workspace_bytes(const Body& body, const RowwiseConfig& c) {
  return std::max<std::int64_t>(workgroups(body, c), 1) * cluster_reductions(body) * place_bytes;
}

double cluster_chain_ns(const Body& body, const machine::Chip& chip) {
  int in_sequence = 0;
  for (const Value& v : body.values) in_sequence = std::max(in_sequence, v.level);
  return in_sequence * 1.5 * chip.atomic_ns;
}

} // namespace kiln
