// Cost: the terms of the closed form, and the sizes at which it is taken.
#include "gen/families/common/cost.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace kiln {
namespace {

constexpr double issue_cycles = issue_clocks, simds = simds_per_cu;
constexpr double dependent_share = 0.4; // of vector instructions, those that read the result of the one before
constexpr double busy_together = 6;     // the power of the norm that joins the times of what may bound a stream
constexpr double kept_dirty = 32 << 20; // bytes that the L2s hold at the end of a kernel and write then

} // namespace

Cost cost_of(const Demand& w, const machine::Chip& chip) {
  const auto ns = [&](double cycles) { return cycles / chip.clock_ghz; };
  const double cus = chip.cus, active = std::min(cus, w.workgroups);
  const bool all_at_once = w.workgroups <= cus * w.per_cu;
  const double on_a_cu = all_at_once ? std::ceil(w.workgroups / cus) : w.workgroups / cus + 0.5;
  const double resident = std::min(w.per_cu, std::ceil(on_a_cu)), rounds = std::max(1.0, on_a_cu / resident);
  const double in_flight = std::min(w.in_flight, w.loaded);

  // Latency grows with what is in flight, the mean over all CUs.
  const double crowd = w.loaded > 0 ? resident * in_flight * (w.far_bytes / w.loaded) * active / cus : 0;
  const double latency = chip.hbm_latency_ns + chip.hbm_ns_per_byte * std::max(0.0, crowd - chip.hbm_free_bytes);

  const double written = w.workgroups * w.written, at_the_end = std::min(written, kept_dirty);
  const std::array<std::pair<double, std::string_view>, 5> bounds{
      {{w.busiest_xcd * ((w.workgroups * w.far_bytes) / chip.hbm_tbs + (written - at_the_end) / chip.write_tbs) / 1e3, "HBM"},
       {ns(on_a_cu * w.busiest * w.fill_bytes / chip.fill_bytes_per_cycle), "a CU's path from L2"},
       {ns(on_a_cu * w.busiest * w.loaded / chip.l1_bytes_per_cycle), "L1"},
       {w.busiest_xcd * w.workgroups * w.fill_bytes / chip.l2_tbs / 1e3, "L2"},
       {ns(std::ceil(on_a_cu * w.waves / simds) * w.busiest * std::max(issue_cycles * w.instructions, w.matrix_cycles)), "instructions"}}};
  const auto most = *std::ranges::max_element(bounds);

  Cost cost;
  const double waves_a_simd = std::ceil(resident * w.waves / simds);
  const double launch = std::min(w.workgroups, cus * w.per_cu) * (w.waves + w.idle_waves) / chip.xcds;
  cost.start = chip.floor_ns + ns(chip.scalar_load_cycles + issue_cycles * w.lead * waves_a_simd) + chip.hbm_latency_ns;
  const double trips = in_flight > 0 ? std::max(1.0, w.trips > 0 ? w.trips : w.busiest * w.loaded / in_flight) : 0;
  // One wave's work: that of all waves is among the bounds.
  const double a_slot = issue_cycles + dependent_share * (chip.dependent_cycles - issue_cycles);
  const double work = ns(w.busiest * std::max(a_slot * w.instructions, w.matrix_cycles)), of_trip = work / std::max(1.0, trips);
  const double own = w.chain_ns + (w.reloads ? latency + (trips - 1) * std::max(latency, of_trip) + of_trip : latency * trips + work);
  const double by_latency = ns(launch) + rounds * own + (rounds - 1) * chip.slot_turnover_ns - chip.hbm_latency_ns - w.chain_ns;
  // What is nearly as busy as the busiest makes that wait.
  double together = std::pow(std::max(0.0, by_latency), busy_together);
  for (const auto& [time, name] : bounds) together += std::pow(time, busy_together);
  cost.stream = std::pow(together, 1 / busy_together) + w.chain_ns;
  cost.bound_by = by_latency > most.first ? "latency" : most.second;
  cost.exit =
      ns(issue_cycles * w.tail * waves_a_simd + chip.store_ack_cycles) + w.exit_ns + w.busiest_xcd * at_the_end / chip.write_tbs / 1e3;
  return cost;
}

std::vector<RunTimeSizes> nominal_sizes(const Plan& plan) {
  const std::vector<Dim>& dims = plan.body.dynamic_dims;
  std::vector<RunTimeSizes> result;
  for (const std::int64_t level : {1, 16, 256, 4096}) {
    RunTimeSizes sizes;
    // A product of several is as large as one alone would be: the first grows, the others stay as small as they may.
    for (const Dim& dim : dims)
      sizes[dim.name()] = std::clamp<std::int64_t>(sizes.empty() ? level : 1, dim.min().value_or(1), dim.max().value_or(max_dim_size));
    if (std::ranges::find(result, sizes) == result.end()) result.push_back(std::move(sizes));
  }
  return result;
}

double outer_size(const Body& body, const RunTimeSizes& sizes) {
  double size = 1;
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) size *= static_cast<double>(dim.is_dynamic() ? sizes.at(dim.name()) : dim.size());
  return size;
}

} // namespace kiln
