// Cluster: the limits of several workgroups per row, their workspace, and their cost.
#include "gen/families/rowwise/cluster.h"
#include "gen/families/common/streams.h"
#include "gen/families/rowwise/rowwise.h"
#include "machine/chip.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int max_tiles = wave_size; // a lane loads one workgroup's part
constexpr int place_bytes = 8;
constexpr std::int64_t max_workspace = 1 << 28; // bytes

std::int64_t workgroups(const Body& body, const RowwiseConfig& c) { return max_rows(body).value_or(0) * c.tiles; }

} // namespace

std::int64_t cluster_reductions(const Body& body) {
  return std::ranges::count_if(body.values, [](const Value& v) { return info(v.expr.op()).kind == OpKind::row_reduce; });
}

std::optional<std::int64_t> max_rows(const Body& body) {
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

bool is_long(const RowwiseConfig& c) { return c.cols > 16 * max_workgroup_size; } // 32 KiB of 16 bits: 0.4 to 0.7 us at 45 to 90 GB/s

bool has_heavy_rows(const Body& body, const RowwiseConfig& c, const Target& target) {
  constexpr double heavy_slots = 100; // of an element
  return is_long(c) || chunk_work(body, rowwise_passes(body, c), c.vec, target).instructions >= heavy_slots * c.vec;
}

bool fills_idle_cus(const Body& body, const RowwiseConfig& c, const Target& target) {
  constexpr int waves_of_heavy_work = 16; // of a CU, four a SIMD
  const int waves = has_heavy_rows(body, c, target) ? waves_of_heavy_work : 1;
  return max_rows(body) && workgroups(body, c) * c.waves_per_row() <= waves * target.compute_units();
}

std::optional<Refusal> why_no_cluster(const Plan& plan, const RowwiseConfig& c) {
  const Body& body = plan.body;
  if (c.threads_per_row < wave_size || c.rows_per_block > 1)
    return refuse_schedule(plan,
                           fmt::format("tiles is {}, and the workgroups of a reduced row have {} lanes per row and {} rows", c.tiles,
                                       c.threads_per_row, c.rows_per_block),
                           "use rows_per_block=1 and 64 threads_per_row or more, or tiles=1");
  if (c.tiles > max_tiles || c.cols >= 1 << 24)
    return refuse_schedule(plan, fmt::format("{} workgroups share a reduced row of {} columns", c.tiles, c.cols),
                           fmt::format("use at most {} tiles, and fewer than 16777216 columns", max_tiles));
  if (!max_rows(body))
    return refuse_schedule(plan, fmt::format("tiles is {}, but the plan reduces rows, and no bound says how many there are", c.tiles),
                           "use tiles=1, or give the rows a bound: dim rows[1..8]");
  if (cluster_reductions(body) > max_shared_reductions)
    return refuse_schedule(plan, fmt::format("tiles is {}, and a row has {} reductions", c.tiles, cluster_reductions(body)),
                           fmt::format("use tiles=1, or at most {} reductions", max_shared_reductions));
  if (cluster_workspace_bytes(body, c) > max_workspace)
    return refuse_schedule(plan,
                           fmt::format("up to {} rows of {} workgroups take a workspace of {} bytes", *max_rows(body), c.tiles,
                                       cluster_workspace_bytes(body, c)),
                           fmt::format("use fewer tiles, or a smaller bound of the rows: {} bytes are the most", max_workspace));
  return {};
}

std::uint32_t cluster_loads(const Body& body) { return 1 + 3 * static_cast<std::uint32_t>(cluster_reductions(body)); }

std::int64_t cluster_workspace_bytes(const Body& body, const RowwiseConfig& c) {
  return std::max<std::int64_t>(workgroups(body, c), 1) * cluster_reductions(body) * place_bytes;
}

int cluster_lds_bytes(const Body& body, const RowwiseConfig& c) {
  if (!is_cluster(body, c)) return 0;
  const int votes = 4 * max_shared_reductions, broadcast = 2 * place_bytes; // where waves have to agree
  const int helped_tiles = 4 * place_bytes;                                 // rounded to the alignment of chunks, before and behind
  const auto reductions = static_cast<int>(cluster_reductions(body));
  return helped_tiles + reductions * c.tiles * place_bytes + (c.waves_per_row() > 1 ? votes + reductions * broadcast : 0);
}

double cluster_chain_ns(const Body& body, const RowwiseConfig& c, double workgroups, const machine::Chip& chip) {
  // Each wave loads the parts of its row, past L2, until the last one is there. So often says the simulation of 8 to 64 workgroups a row
  // with 1 to 16 waves each, 8 rows of 131072 columns and 16 of 32768.
  constexpr double polls = 5;
  int in_sequence = 0;
  for (const Value& v : body.values) in_sequence = std::max(in_sequence, v.level);
  const double polled = workgroups * c.waves_per_row() * ceil_div(c.tiles * place_bytes, line_bytes) * line_bytes;
  return in_sequence * (1.5 * chip.atomic_ns + polls * polled / (chip.mall_tbs * 1e3));
}

} // namespace kiln
