// Cost: the terms of the closed form, and the sizes at which it is taken.
#include "gen/families/common/cost.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace kiln {
namespace {

constexpr double simds = simds_per_cu;
// By the simulation of 500 products: the share of the last turn of a ring that is left to do when the last data come, for one load that is
// late holds up those behind it.
constexpr double left_at_end = 0.25;
constexpr double busy_together = 6; // the power of the norm that joins the times of what may bound a stream

bool has_products(const Plan& plan) {
  return !plan.products.empty() || std::ranges::any_of(plan.problems, [](const auto& problem) { return has_products(*problem); });
}

} // namespace

Cost cost_of(const Demand& w, const machine::Chip& chip) {
  const auto ns = [&](double cycles) { return cycles / chip.clock_ghz; };
  const double cus = chip.cus;
  const bool all_at_once = w.workgroups <= cus * w.per_cu;
  const double on_a_cu = all_at_once ? std::ceil(w.workgroups / cus) : w.workgroups / cus + 0.5;
  const double rounds = std::max(1.0, on_a_cu / std::min(w.per_cu, std::ceil(on_a_cu)));
  const double issued = std::max(issue_clocks * w.instructions, w.matrix_cycles); // cycles of a SIMD for a wave
  const double wave_cycles = std::max(issue_clocks * (w.instructions + w.dependent), w.matrix_cycles);
  // What L1s wait for comes the later the more of it is in flight, the mean over all CUs and, where some have more workgroups, the launch.
  const double near_bytes = w.fill_bytes - w.far_bytes,
               waited_for = std::min(chip.max_missing_bytes, std::min(w.per_cu, on_a_cu) * w.in_flight);
  const double crowd = waited_for * w.workgroups / cus / on_a_cu,
               crowded = chip.hbm_ns_per_byte * std::max(0.0, crowd - chip.hbm_free_bytes);
  const double near_ns = ns(chip.l2_latency_cycles) + w.near_lost * (chip.hbm_latency_ns - ns(chip.l2_latency_cycles));
  const double path = ns(on_a_cu * w.fill_bytes / chip.fill_bytes_per_cycle), l1 = ns(on_a_cu * w.register_bytes / chip.l1_bytes_per_cycle);
  const double instructions = ns(std::ceil(on_a_cu * w.waves / simds) * issued);
  const std::array<std::pair<double, std::string_view>, 5> bounds{
      {{w.workgroups * (w.far_bytes / chip.hbm_tbs + w.written / chip.write_tbs) / 1e3, "HBM"},
       {path, "a CU's path from L2"},
       {l1, "L1"},
       {on_a_cu * (w.far_bytes * (chip.hbm_latency_ns + crowded) + near_bytes * near_ns) / chip.max_missing_bytes,
        "lines that L1 waits for"},
       {instructions, "instructions"}}};
  const auto most = *std::ranges::max_element(bounds);

  Cost cost;
  cost.start = chip.floor_ns + ns(chip.scalar_load_cycles) + chip.hbm_latency_ns;
  const double trips = w.in_flight > 0 ? std::max(1.0, w.loaded / w.in_flight) : 0;
  const double launch = ns(std::min(w.workgroups, cus * w.per_cu) * w.waves / chip.xcds); // a wave a cycle and XCD
  // A stage is loaded anew once it has come and is used: beyond the latency a turn of the ring takes the time of one stage.
  const double refills = w.stage_share * std::max(path, l1);
  const double by_latency =
      launch + refills + rounds * (w.chain_ns + chip.hbm_latency_ns * trips + ns(wave_cycles)) - chip.hbm_latency_ns - w.chain_ns;
  // What is nearly as busy as the busiest makes that wait.
  double together = std::pow(std::max(0.0, by_latency), busy_together);
  for (const auto& [time, name] : bounds) together += std::pow(std::max(0.0, time), busy_together);
  // The first workgroups begin together, and end together: nothing is under way until the next ones' loads come. Later ones have drifted
  // apart.
  const double in_step = std::min(1.0, rounds - 1) * (w.chain_ns + chip.hbm_latency_ns);
  cost.stream = std::pow(together, 1 / busy_together) + w.chain_ns + in_step;
  cost.bound_by = by_latency > most.first ? "latency" : most.second;
  cost.cu_share = std::max({path, l1, instructions}) / std::max(by_latency, most.first);
  const double steps_left = w.stage_share > 0 ? left_at_end * ns(wave_cycles) / trips : 0;
  cost.exit = ns(chip.store_ack_cycles) + steps_left + w.exit_ns;
  return cost;
}

std::vector<RunTimeSizes> nominal_sizes(const Plan& plan) {
  const std::vector<Dim>& dims = plan.body.dynamic_dims;
  std::vector<RunTimeSizes> result;
  const auto levels = has_products(plan) ? std::vector<std::int64_t>{max_dim_size} : std::vector<std::int64_t>{1, 16, 256, 4096};
  for (const std::int64_t level : levels) {
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
