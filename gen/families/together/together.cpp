// Together: the problems' families, schedules of each, and what they come to.
#include "gen/families/together/together.h"
#include "gen/error.h"
#include "gen/families/rowwise/cluster.h"
#include "gen/families/schedule.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace kiln {
namespace {

constexpr std::size_t most_of_a_size = 3; // schedules for one number of threads: the compiler may break what the first ones promise

using Configs = std::vector<ProblemConfig>;

const Family& family_alone(const AnalysedSpec& problem) {
  const std::string_view wanted = Elementwise::takes(problem) ? Elementwise::name : Rowwise::name;
  return *std::ranges::find(registered_families(), wanted, &Family::name);
}

const std::string& name_of(const Plan& problem) { return problem.body.outputs.front().name; }

Schedule schedule_of(const Plan& problem, const ProblemConfig& c) {
  return std::visit([&](const auto& config) { return Schedule{.family = problem.family, .config = config, .why = {}}; }, c.config);
}

bool is_valid(const Plan& problem, const ProblemConfig& c, const Target& target) {
  try {
    require_valid(schedule_of(problem, c), problem, target);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Its tensors in the order of the spec, each once.
std::vector<TensorPlan> tensors_of(const AnalysedSpec& spec) {
  std::vector<TensorPlan> result;
  const auto add = [&](const std::string& name) {
    for (const auto& problem : spec.problems)
      if (const auto t = std::ranges::find(problem->body.tensors, name, &TensorPlan::name); t != problem->body.tensors.end()) {
        result.push_back(*t);
        return;
      }
  };
  for (const Expr& input : spec.body.inputs) add(input->name);
  for (const Output& output : spec.body.outputs) add(output.name);
  return result;
}

bool is_cluster_of(const Plan& problem, const ProblemConfig& c) {
  const auto* const rows = std::get_if<RowwiseConfig>(&c.config);
  return rows != nullptr && is_cluster(problem.body, *rows);
}

// The same config for workgroups of `threads`, as near as it comes.
ProblemConfig with_threads(const Plan& problem, ProblemConfig c, int threads, const Target& target) {
  if (auto* const flat = std::get_if<ElementwiseConfig>(&c.config)) {
    flat->threads = threads;
    Elementwise::after_setting(*flat, "threads", problem, target);
    return c;
  }
  auto& rows = std::get<RowwiseConfig>(c.config);
  if (rows.threads() == threads) return c;
  if (rows.threads_per_row <= wave_size) {
    rows.rows_per_block = threads / rows.threads_per_row;
  } else {
    rows.threads_per_row = threads;
    rows.tiles = 1;
    rows.ahead = std::min(rows.ahead, rows.chunks());
  }
  return c;
}

// `own` in workgroups of `waves`: those that have nothing to do take room all the same.
Demand in_workgroups_of(double waves, Demand own) {
  own.per_cu = std::max(1.0, std::floor(own.per_cu * own.waves / waves));
  own.idle_waves = waves - own.waves;
  return own;
}

double nominal_cost(const Plan& problem, const ProblemConfig& c, int threads, const Target& target) {
  double sum = 0;
  for (const RunTimeSizes& sizes : nominal_sizes(problem)) {
    const Demand own = problem.family->demand(problem, schedule_of(problem, c), target, sizes);
    sum += std::log(cost_of(in_workgroups_of(threads / wave_size, own), chip_terms(target)).total());
  }
  return sum;
}

// Schedules of a problem in workgroups of `threads`, the least cost first: those that use all of them, or also those that use fewer.
Configs ranked(const Plan& problem, const Configs& known, int threads, bool fewer, const Target& target) {
  std::vector<std::pair<double, ProblemConfig>> by_cost;
  const auto add = [&](const ProblemConfig& c) {
    const auto same = [&](const auto& other) { return other.second == c; };
    if (c.threads() > threads || std::ranges::any_of(by_cost, same) || is_cluster_of(problem, c) || !is_valid(problem, c, target)) return;
    by_cost.emplace_back(nominal_cost(problem, c, threads, target), c);
  };
  for (const ProblemConfig& each : known) {
    add(with_threads(problem, each, threads, target));
    if (fewer) add(each);
  }
  std::ranges::stable_sort(by_cost, {}, &std::pair<double, ProblemConfig>::first);
  Configs result;
  for (auto& [cost, c] : by_cost) result.push_back(std::move(c));
  return result;
}

Configs configs_alone(const Plan& problem, const Target& target) {
  Configs result;
  const auto add = [&]<typename F>() {
    for (const auto& c : F::candidates(problem, target)) result.push_back({.name = name_of(problem), .config = c.config});
  };
  if (problem.family->name == Elementwise::name) add.template operator()<Elementwise>();
  else add.template operator()<Rowwise>();
  return result;
}

// The most that a problem asks for, which the kernel has.
int waves_per_eu(const TogetherConfig& config) {
  int most = 0;
  for (const ProblemConfig& problem : config.problems)
    most = std::max(most, std::visit([](const auto& c) { return c.waves_per_eu; }, problem.config));
  return most;
}

// Every problem has LDS of its own, whichever a workgroup computes.
int lds_of(const TogetherConfig& config, const Plan& plan, const Target& target) {
  int bytes = 0;
  for (std::size_t i = 0; i < config.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    bytes += problem.family->promises(problem, schedule_of(problem, config.problems[i]), target).max_lds_bytes;
  }
  return bytes;
}
bool fits_lds(const TogetherConfig& config, const Plan& plan, const Target& target) {
  return lds_of(config, plan, target) <= target.lds_bytes();
}

std::string why(const TogetherConfig& config, const Plan& plan) {
  const int threads = config.threads();
  std::string text = fmt::format("{} problems in workgroups of {} threads", config.problems.size(), threads);
  for (std::size_t i = 0; i < config.problems.size(); ++i) {
    const ProblemConfig& own = config.problems[i];
    text += fmt::format("{} {} by {}", i == 0 ? ":" : ",", own.name, plan.problems[i]->family->name);
    if (own.threads() != threads) text += fmt::format(" with {} of them", own.threads());
  }
  return text;
}

// Adds what takes the first of all choices, then the second, and so on. Choices are of one number of threads, the most of them.
void add_ranks(std::vector<Candidate<TogetherConfig>>& result, const std::vector<Configs>& choices, const Plan& plan, int threads,
               const Target& target) {
  if (std::ranges::any_of(choices, &Configs::empty)) return;
  const std::size_t ranks = std::ranges::max(choices, {}, &Configs::size).size();
  for (std::size_t rank = 0, fitting = 0; rank < ranks && fitting < most_of_a_size; ++rank) {
    TogetherConfig config;
    for (const Configs& c : choices) config.problems.push_back(c[std::min(rank, c.size() - 1)]);
    if (config.threads() != threads || std::ranges::find(result, config, &Candidate<TogetherConfig>::config) != result.end()) continue;
    if (rank + 1 < ranks && !fits_lds(config, plan, target)) continue; // the last one says why
    result.push_back({config, why(config, plan)});
    ++fitting;
  }
}

} // namespace

int ProblemConfig::threads() const {
  if (const auto* const flat = std::get_if<ElementwiseConfig>(&config)) return flat->threads;
  return std::get<RowwiseConfig>(config).threads();
}

int TogetherConfig::threads() const { return std::ranges::max(problems, {}, &ProblemConfig::threads).threads(); }

bool Together::takes(const AnalysedSpec& spec) { return !spec.problems.empty(); }

void Together::lay_out(AnalysedSpec& spec) {
  for (const auto& problem : spec.problems) {
    problem->family = &family_alone(*problem);
    problem->family->lay_out(*problem);
  }
  spec.body.tensors = tensors_of(spec);
}

// First the schedules in which all problems use all threads, which are tried first where they cost as much as others.
std::vector<Candidate<TogetherConfig>> Together::candidates(const Plan& plan, const Target& target) {
  std::vector<Configs> alone;
  std::set<int> sizes;
  for (const auto& problem : plan.problems) {
    alone.push_back(configs_alone(*problem, target));
    for (const ProblemConfig& c : alone.back()) sizes.insert(c.threads());
  }
  std::vector<Candidate<Config>> result;
  for (const bool fewer : {false, true})
    for (const int threads : sizes) {
      std::vector<Configs> choices;
      for (std::size_t i = 0; i < alone.size(); ++i) choices.push_back(ranked(*plan.problems[i], alone[i], threads, fewer, target));
      add_ranks(result, choices, plan, threads, target);
    }
  if (!result.empty()) return result;
  Config last; // says what is wrong with a problem
  for (const Configs& c : alone) last.problems.push_back(c.back());
  return {{last, why(last, plan)}};
}

std::vector<Candidate<TogetherConfig>> Together::fallbacks(const Config& first) {
  Candidate<Config> result{first, {}};
  for (ProblemConfig& problem : result.config.problems) {
    const auto* const rows = std::get_if<RowwiseConfig>(&problem.config);
    if (rows == nullptr) continue;
    for (const auto& own : Rowwise::fallbacks(*rows)) {
      if (vgprs_of_wave(first.threads() / wave_size) < vgprs_of_waves_per_eu(own.config.waves_per_eu)) continue; // waves that end at once
      problem.config = own.config, result.why = own.why;
    }
  }
  if (result.why.empty()) return {};
  return {result};
}

// Fields that follow from others.
void Together::after_setting(Config& config, std::string_view field, const Plan& plan, const Target& target) {
  for (std::size_t i = 0; i < config.problems.size(); ++i)
    if (auto* const flat = std::get_if<ElementwiseConfig>(&config.problems[i].config))
      Elementwise::after_setting(*flat, field, *plan.problems[i], target);
}

void Together::require_valid(const Config& c, const Plan& plan, const Target& target) {
  if (c.problems.size() != plan.problems.size())
    reject_schedule(plan, fmt::format("it has {} problems, the plan has {}", c.problems.size(), plan.problems.size()),
                    "make the schedule for this plan");
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    const ProblemConfig& own = c.problems[i];
    const bool flat = std::holds_alternative<ElementwiseConfig>(own.config);
    if (flat != (problem.family->name == Elementwise::name) || own.name != name_of(problem))
      reject_schedule(plan, fmt::format("its problem {} is not '{}', {}", i, name_of(problem), problem.family->name),
                      "make the schedule for this plan");
    try {
      problem.family->require_valid(schedule_of(problem, own), problem, target);
    } catch (const UserError& error) {
      throw UserError(error.subject, fmt::format("'{}': {}", own.name, error.fact), error.remedy);
    }
    if (is_cluster_of(problem, own))
      reject_schedule(plan,
                      fmt::format("{0}.tiles is {1}: workgroups that share a reduced row wait for each other, beside others", own.name,
                                  std::get<RowwiseConfig>(own.config).tiles),
                      fmt::format("use {}.tiles=1", own.name));
  }
  if (!fits_lds(c, plan, target))
    reject_schedule(plan,
                    fmt::format("its problems take {} bytes of LDS, {} has {}", lds_of(c, plan, target), target.arch(), target.lds_bytes()),
                    "use residency=reload for one of them, or compute them in several kernels");
}

// Bytes are the mean over all workgroups, instructions that over all waves that work; what follows each other, and registers, are those
// of the most.
Demand Together::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  std::vector<Demand> all;
  Demand total{.workgroups = 0, .waves = 0};
  double waves = 0, waves_a_cu = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    const Demand& own = all.emplace_back(problem.family->demand(problem, schedule_of(problem, c.problems[i]), target, sizes));
    total.workgroups += own.workgroups;
    waves += own.workgroups * own.waves;
    waves_a_cu = std::min(waves_a_cu, own.per_cu * own.waves);
    total.chain_ns = std::max(total.chain_ns, own.chain_ns);
    total.exit_ns = std::max(total.exit_ns, own.exit_ns);
  }
  for (const Demand& own : all) {
    for (double Demand::* const part : {&Demand::far_bytes, &Demand::fill_bytes, &Demand::loaded, &Demand::written, &Demand::in_flight})
      total.*part += own.*part * own.workgroups / total.workgroups;
    for (double Demand::* const part : {&Demand::instructions, &Demand::lead, &Demand::tail, &Demand::matrix_cycles})
      total.*part += own.*part * own.workgroups * own.waves / waves;
  }
  total.waves = waves / total.workgroups;
  total.idle_waves = c.threads() / wave_size - total.waves;
  total.per_cu = std::max(1.0, std::floor(waves_a_cu / (c.threads() / wave_size)));
  for (const Demand& own : all)
    if (total.loaded > 0) total.busiest = std::max(total.busiest, own.busiest * own.loaded / total.loaded);
  return total;
}

std::optional<std::int64_t> Together::addition_depth(const Config& c) {
  std::int64_t most = 0;
  for (const ProblemConfig& problem : c.problems) {
    const auto* const rows = std::get_if<RowwiseConfig>(&problem.config);
    most = std::max(most, rows != nullptr ? *Rowwise::addition_depth(*rows) : 0);
  }
  return most;
}

KernelSource Together::emit(const Plan& plan, const Config& c, const Target& target) {
  std::vector<KernelParts> parts;
  const std::string block = block_name(plan);
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    if (const auto* const flat = std::get_if<ElementwiseConfig>(&c.problems[i].config))
      parts.push_back(Elementwise::parts(problem, *flat, target, block));
    else parts.push_back(Rowwise::parts(problem, std::get<RowwiseConfig>(c.problems[i].config), target, block));
  }
  return assemble_together(plan, target, parts, name, waves_per_eu_attribute(waves_per_eu(c)));
}

// The code of all problems keeps what each one says of its own: limits are the largest, what one forbids another may need.
Promises Together::promises(const Plan& plan, const Config& c, const Target& target) {
  Promises total;
  for (std::size_t i = 0; i < c.problems.size(); ++i) {
    const Plan& problem = *plan.problems[i];
    const Promises own = problem.family->promises(problem, schedule_of(problem, c.problems[i]), target);
    if (i == 0) {
      total = own;
      continue;
    }
    total.max_vgprs = std::max(total.max_vgprs, own.max_vgprs);
    total.max_lds_bytes += own.max_lds_bytes;
    total.max_sgpr_spills += own.max_sgpr_spills;
    for (PromisedWidths Promises::* const widths : {&Promises::global_loads, &Promises::lds}) {
      PromisedWidths& sum = total.*widths;
      sum = {.min_bytes = std::min(sum.min_bytes, (own.*widths).min_bytes),
             .exceptions = sum.exceptions + (own.*widths).exceptions,
             .at_least = sum.at_least + (own.*widths).at_least};
    }
    for (const std::string& each : own.required)
      if (std::ranges::find(total.required, each) == total.required.end()) total.required.push_back(each);
    const auto allowed = [](const std::vector<std::string>& list) {
      return [&](const std::string& each) { return std::ranges::find(list, each) == list.end(); };
    };
    std::erase_if(total.forbidden, allowed(own.forbidden));
    std::erase_if(total.no_findings, allowed(own.no_findings));
  }
  total.limit_to_waves_per_eu(waves_per_eu(c));
  return total;
}

} // namespace kiln
