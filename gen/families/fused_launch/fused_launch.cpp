// Fused launch: the problems' families, schedules of each, and what they come to.
#include "gen/error.h"
#include "gen/families/fused_launch/problem.h"
#include "gen/families/gemm/register_model.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace kiln {
namespace {

// The first that takes a problem beside others.
const Family& family_beside_others(const AnalysedSpec& problem) {
  const std::span<const Family> families = registered_families();
  const auto takes = [&](const Family& f) { return f.can_compute(problem); };
  const auto found = std::ranges::find_if(families, [&](const Family& f) { return f.parts != nullptr && takes(f); });
  if (found != families.end()) return *found;
  const auto alone = std::ranges::find_if(families, takes);
  const std::string fact = alone == families.end() ? "no family of kernels computes it"
                                                   : fmt::format("it is computed by {}, whose launch has no room for others", alone->name);
  throw UserError(fmt::format("output '{}' beside outputs of other shapes", problem.body.outputs.front().name), fact,
                  "compute it in a kernel of its own");
}

// Its tensors in the order of the spec, each once.
std::vector<TensorPlan> tensors_of(const AnalysedSpec& spec) {
  std::vector<TensorPlan> result;
  const auto add = [&](const std::string& name) {
    for (const auto& problem : spec.problems)
      for (const TensorPlan& t : problem->body.tensors)
        if (t.memory() == name && std::ranges::find(result, t.name, &TensorPlan::name) == result.end()) result.push_back(t);
  };
  for (const Expr& input : spec.body.inputs) add(input->name);
  for (const Output& output : spec.body.outputs) {
    add(output.name);
    for (TensorPlan& t : result) // in a later phase it is in place of nothing, if only an earlier one reads that
      if (t.name == output.name) t.in_place_of = output.in_place_of;
  }
  return result;
}

// The most that a problem needs, which the kernel has.
int waves_per_eu(const FusedLaunchConfig& config) {
  int most = 0;
  const auto wanted = [](const auto& c) {
    if constexpr (requires { c.waves_per_eu; }) return c.waves_per_eu;
    else return 0;
  };
  for (const ProblemSchedule& problem : config.problems) most = std::max(most, std::visit(wanted, problem.schedule.config));
  return most;
}

// Whether the kernel is compiled for VGPRs alone: a product needs it, and no other one has accumulators in AGPRs for want of room.
bool without_agprs(const FusedLaunchConfig& config) {
  bool wanted = false;
  for (const ProblemSchedule& problem : config.problems)
    if (const auto* const gemm = std::get_if<GemmConfig>(&problem.schedule.config)) {
      if (gemm_without_agprs(*gemm)) wanted = true;
      else if (gemm->unpacks_in_order() || gemm->block_scaled()) return false;
    }
  return wanted;
}

} // namespace

int FusedLaunchConfig::threads() const { return std::ranges::max(problems, {}, &ProblemSchedule::threads).threads(); }
bool FusedLaunchConfig::operator==(const FusedLaunchConfig& other) const { return problems == other.problems; }

bool FusedLaunch::can_compute(const AnalysedSpec& spec) { return !spec.problems.empty(); }

void FusedLaunch::lay_out(AnalysedSpec& spec) {
  for (const auto& problem : spec.problems) {
    problem->family = &family_beside_others(*problem);
    problem->family->lay_out(*problem);
  }
  spec.body.tensors = tensors_of(spec);
}

// Fields that follow from others.
void FusedLaunch::after_setting(Config& config, std::string_view field, const Plan& plan, const Target& target) {
  for (std::size_t i = 0; i < config.problems.size(); ++i) {
    auto& [name, schedule] = config.problems[i];
    if (field.starts_with(name + ".")) schedule.family->after_setting(schedule, field.substr(name.size() + 1), *plan.problems[i], target);
  }
}

std::optional<Refusal> FusedLaunch::why_not(const Config& c, const Plan& plan, const Target& target) {
  if (c.problems.size() != plan.problems.size())
    return refuse_schedule(plan, fmt::format("it has {} problems, the plan has {}", c.problems.size(), plan.problems.size()),
                           "make the schedule for this plan");
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    const ProblemSchedule& own = c.problems[i];
    if (own.schedule.family != problem.family || own.name != name_of(problem))
      return refuse_schedule(plan, fmt::format("its problem {} is not '{}', {}", i, name_of(problem), problem.family->name),
                             "make the schedule for this plan");
    if (const auto why = problem.family->why_not(own.schedule, problem, target))
      return Refusal{why->subject, fmt::format("'{}': {}", own.name, why->fact), why->remedy};
    if (is_cluster_of(problem, own.schedule))
      return refuse_schedule(plan,
                             fmt::format("{0}.tiles is {1}: workgroups that share a reduced row wait for each other, beside others",
                                         own.name, std::get<RowwiseConfig>(own.schedule.config).tiles),
                             fmt::format("use {}.tiles=1", own.name));
    if (auto why = why_no_registers(problem, own, c.threads(), target)) return why;
    if (!plan.phases.empty() && own.threads() != c.threads())
      return refuse_schedule(
          plan, fmt::format("'{}' takes {} threads of {}, and all go on with the next phase", own.name, own.threads(), c.threads()),
          fmt::format("give all problems as many waves or threads a row: {} threads", c.threads()));
  }
  if (const int lds = lds_of(c, plan, target); lds > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("its problems take {} bytes of LDS, {} has {}", lds, target.arch(), target.lds_bytes()),
                           "use residency=reload for rows, a smaller tile_n for products, or compute them in several kernels");
  return {};
}

namespace {

// What problems side by side demand. Bytes are the mean over all workgroups, instructions that over all waves that work; what follows each
// other, and registers, are those of the most.
Demand demand_side_by_side(const Plan& plan, const FusedLaunchConfig& c, std::size_t first, std::size_t count, const Target& target,
                           const RunTimeSizes& sizes) {
  std::vector<Demand> all;
  Demand total{.workgroups = 0, .waves = 0};
  double waves = 0, waves_a_cu = std::numeric_limits<double>::infinity();
  for (std::size_t i = first; i < first + count; ++i) {
    const Plan& problem = *plan.problems[i];
    const Demand& own = all.emplace_back(problem.family->demand(problem, c.problems[i].schedule, target, sizes).value_or(Demand{}));
    total.workgroups += own.workgroups;
    waves += own.workgroups * own.waves;
    waves_a_cu = std::min(waves_a_cu, own.per_cu * own.waves);
    total.chain_ns = std::max(total.chain_ns, own.chain_ns);
    total.exit_ns = std::max(total.exit_ns, own.exit_ns);
  }
  for (const Demand& own : all) {
    for (double Demand::* const part : {&Demand::far_bytes, &Demand::fill_bytes, &Demand::loaded, &Demand::written, &Demand::in_flight})
      total.*part += own.*part * own.workgroups / total.workgroups;
    for (double Demand::* const part : {&Demand::instructions, &Demand::matrix_cycles})
      total.*part += own.*part * own.workgroups * own.waves / waves;
  }
  total.waves = waves / total.workgroups;
  total.per_cu = std::max(1.0, std::floor(waves_a_cu / (c.threads() / wave_size)));
  if (const int lds = lds_of(c, plan, target); lds > 0) total.per_cu = std::clamp<double>(target.lds_bytes() / lds, 1, total.per_cu);
  return total;
}

} // namespace

// Phases behind the first take what launches of their own would, less what a launch takes to begin; and an atomic there and back for each.
Demand FusedLaunch::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  if (plan.phases.empty()) return demand_side_by_side(plan, c, 0, c.problems.size(), target, sizes);
  const machine::Chip& chip = target.chip();
  Demand total = demand_side_by_side(plan, c, 0, plan.phases[0], target, sizes);
  for (std::size_t phase = 1, first = plan.phases[0]; phase < plan.phases.size(); first += plan.phases[phase++])
    total.exit_ns +=
        chip.atomic_ns - chip.floor_ns + cost_of(demand_side_by_side(plan, c, first, plan.phases[phase], target, sizes), chip).total();
  return total;
}

std::optional<std::int64_t> FusedLaunch::addition_depth(const Config& c) {
  std::int64_t most = 0;
  for (const ProblemSchedule& problem : c.problems) {
    const auto depth = kiln::addition_depth(problem.schedule);
    if (!depth) return {};
    most = std::max(most, *depth);
  }
  return most;
}

KernelSource FusedLaunch::emit(const Plan& plan, const Config& c, const Target& target) {
  std::vector<KernelParts> parts;
  const std::string block = block_name(plan);
  std::int64_t workspace = 0;
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    const std::string all = workspace_name(plan);
    const std::string own = workspace == 0 ? all : fmt::format("static_cast<char*>({}) + {}ull", all, workspace);
    parts.push_back(problem.family->parts(problem, c.problems[i].schedule, target, {.block = block, .workspace = own}));
    workspace += workspace_part(parts.back().workspace_bytes);
  }
  const std::string header =
      std::ranges::any_of(plan.problems, [](const auto& p) { return is_product(*p); }) ? "fused_launch_gemm" : std::string(name);
  return assemble_fused_launch(plan, target, parts, header,
                               waves_per_eu_attribute(waves_per_eu(c), without_agprs(c) ? "KILN_VGPRS_ONLY " : ""));
}

// What templates/handover.h loads: the number of launches, the count, and flags of places that were given up. Its barriers, and those of
// problems, stand in loops over parts.
static void promise_handover(Promises& p) {
  Widths& loads = p.in_loops_with.empty() ? p.global_loads : p.loads_outside_loops;
  if (loads.min_bytes > 0) loads.exceptions += 4;
  p.max_barriers = {};
  if (p.max_lds_bytes) *p.max_lds_bytes += 16;
}

Promises FusedLaunch::promises(const Plan& plan, const Config& c, const Target& target) {
  std::optional<Promises> total;
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    Promises own = problem.family->promises(problem, c.problems[i].schedule, target);
    total = total ? together(*total, own) : std::move(own);
  }
  for (std::size_t phase = 1; phase < plan.phases.size(); ++phase) promise_handover(*total);
  limit_to_waves_per_eu(*total, waves_per_eu(c));
  return *total;
}

} // namespace kiln
