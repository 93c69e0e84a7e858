// Problem: its name, schedule, LDS, registers and demand.
#include "gen/families/fused_launch/problem.h"
#include "gen/families/rowwise/cluster.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

const std::string& name_of(const Plan& problem) { return problem.body.outputs.front().name; }

bool is_cluster_of(const Plan& problem, const Schedule& schedule) {
  const auto* const rows = std::get_if<RowwiseConfig>(&schedule.config);
  return rows != nullptr && is_cluster(problem.body, *rows);
}

int lds_of(const FusedLaunchConfig& config, const Plan& plan, const Target& target) {
  int bytes = 0;
  for (std::size_t i = 0; i < config.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    bytes += problem.family->promises(problem, config.problems[i].schedule, target).max_lds_bytes.value_or(0);
  }
  return bytes;
}

std::optional<Refusal> why_no_registers(const Plan& problem, const ProblemSchedule& c, int threads, const Target& target) {
  const int most = problem.family->promises(problem, c.schedule, target).max_vgprs.value_or(max_vgprs),
            left = vgprs_of_wave(threads / wave_size);
  if (most <= left) return {};
  const int waves = ceil_div(threads / wave_size, simds_per_cu);
  return refuse_schedule(
      problem,
      fmt::format("a wave of '{}' takes up to {} registers, and workgroups of {} threads leave it {}", c.name, most, threads, left),
      fmt::format("use {}.waves_per_eu={}, or fewer threads for the other problems", c.name, waves));
}

Demand demand_in(double waves, const Plan& problem, const Schedule& schedule, const Target& target, const RunTimeSizes& sizes) {
  Demand own = problem.family->demand(problem, schedule, target, sizes).value_or(Demand{});
  own.per_cu = std::max(1.0, std::floor(own.per_cu * own.waves / waves));
  return own;
}

} // namespace kiln
