// Problem: one of several in a launch, with its schedule as its own family has it. Internal to gen/families/fused_launch.
#pragma once
#include "gen/families/fused_launch/fused_launch.h"
#include "gen/families/schedule.h"

namespace kiln {

const std::string& name_of(const Plan& problem);
inline bool is_product(const Plan& problem) { return !problem.products.empty(); }

// Whether workgroups of the problem wait for each other in the middle of a row.
bool is_cluster_of(const Plan& problem, const Schedule& schedule);

// Every problem has LDS of its own, whichever a workgroup computes.
int lds_of(const FusedLaunchConfig& config, const Plan& plan, const Target& target);

// Whether the registers that workgroups of `threads` leave a wave are fewer than the problem may take.
std::optional<Refusal> why_no_registers(const Plan& problem, const ProblemSchedule& own, int threads, const Target& target);

// What the problem demands of a chip in workgroups of `waves`: those that have nothing to do take room all the same.
Demand demand_in(double waves, const Plan& problem, const Schedule& schedule, const Target& target, const RunTimeSizes& sizes);

// Threads of a workgroup in which batch-invariant rows have their order, and what that of a problem is then.
int invariant_threads(const Plan& plan, const Target& target);
SumOrder invariant_order_of(const Plan& problem, int threads, const Target& target);

} // namespace kiln
