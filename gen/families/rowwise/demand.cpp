// Demand of rows: what their workgroups demands of a chip.
#include "gen/families/common/streams.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/rowwise/rowwise.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln {
namespace {

constexpr double slots_of_lds_access = 4; // of a wave: 1 KiB at 64 bytes per clock, shared by four SIMDs

// The share of a row that L2 has lost when the next pass reads it again: the rows that are under way on an XCD drive each other out.
double lost_between_passes(const Demand& w, double workgroup_bytes, const machine::Chip& chip) {
  const double on_a_cu = std::min(w.per_cu, std::ceil(w.workgroups / chip.cus)),
               rows = on_a_cu * std::min<double>(chip.cus, w.workgroups) / chip.xcds;
  return std::clamp(rows * workgroup_bytes / machine::l2_bytes - 0.5, 0.0, 1.0);
}

// Loads that follow each other: the turns of all passes. The next pass's first loads are issued before a reduction is waited for, unless
// some lanes have nothing to load.
double trips_of(const std::vector<Pass>& passes, const RowwiseConfig& c) {
  const auto loading = static_cast<int>(std::ranges::count_if(passes, [](const Pass& pass) { return !pass.streams.empty(); }));
  return std::max(1, loading * ceil_div(c.chunks(), c.prefetch_depth) - (c.exact() ? loading - 1 : 0));
}

// Issue slots of a wave that has whole rows, however many: what has one value a row, and reductions of rows, which halve their lanes. Where
// waves share a row, all wait for that, which is in the chain.
double slots_of_rows(const Body& body, const RowwiseConfig& c) {
  if (c.threads_per_row > wave_size) return 0;
  const int halvings = std::bit_width(static_cast<unsigned>(c.threads_per_row)) - 1;
  double slots = 0;
  for (const Value& v : body.values) {
    if (v.extent != Extent::row && v.extent != Extent::scalar) continue;
    slots += info(v.expr.op()).kind == OpKind::row_reduce ? halvings : info(v.expr.op()).cost;
  }
  return slots;
}

} // namespace

Demand Rowwise::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  return demand_of_rows(plan.body, c, target, outer_size(plan.body, sizes));
}

Demand demand_of_rows(const Body& body, const RowwiseConfig& c, const Target& target, double rows) {
  const std::vector<Pass> passes = rowwise_passes(body, c);
  const ChunkWork chunk = chunk_work(body, passes, c.vec, target);
  const double cols = static_cast<double>(body.cols), lanes = c.threads();
  Demand w{.workgroups = std::max(1.0, std::ceil(rows / c.rows_per_block)) * c.tiles, .waves = lanes / wave_size};
  const double used = rows * cols / (w.workgroups * lanes * c.vec * c.chunks()); // the rest lies beyond rows and columns
  const double elements = lanes * c.chunks() * used;                             // vectors of a workgroup
  const machine::Chip& chip = target.chip();
  w.per_cu =
      workgroups_per_cu(c.threads() / wave_size, wave_vgprs(registers_of(body, passes, c), c.waves_per_eu), lds_bytes(body, c), target);
  w.far_bytes =
      (chunk.far_bytes + chunk.again_bytes * lost_between_passes(w, (chunk.far_bytes + chunk.written) * elements, chip)) * elements;
  w.fill_bytes = w.loaded = (chunk.far_bytes + chunk.near_bytes) * elements;
  w.written = chunk.written * elements;
  w.in_flight = w.loaded / trips_of(passes, c);
  w.instructions = chunk.instructions * c.chunks() + slots_of_rows(body, c);
  if (c.residency == Residency::lds) w.instructions += c.chunks() * kept_registers(body, passes, c.vec) / 4.0 * 2 * slots_of_lds_access;
  const double lanes_a_row = std::min(c.threads_per_row, wave_size);
  double cycles = std::bit_width(static_cast<unsigned>(lanes_a_row)) * 2 * chip.dependent_cycles; // halves of lanes, pairwise
  if (c.waves_per_row() > 1) cycles = 2 * cycles + 2 * chip.lds_latency_cycles + chip.barrier_cycles;
  w.chain_ns = (body.passes - 1) * cycles / chip.clock_ghz;
  if (is_cluster(body, c)) w.chain_ns += cluster_chain_ns(body, c, w.workgroups, chip);
  return w;
}

} // namespace kiln
