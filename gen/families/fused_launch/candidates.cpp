// Fused launch: the schedules of several problems that one launch may have.
#include "gen/families/fused_launch/problem.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

namespace kiln {
namespace {

constexpr std::size_t max_of_a_size = 3; // schedules for one number of threads: the compiler may break what the first ones promise

using Configs = std::vector<ProblemSchedule>;

double nominal_cost(const Plan& problem, const Schedule& c, int threads, const Target& target) {
  double sum = 0;
  for (const RunTimeSizes& sizes : nominal_sizes(problem)) {
    sum += std::log(cost_of(demand_in(threads / wave_size, problem, c, target, sizes), target.chip()).total());
  }
  return sum;
}

// Schedules of a problem in workgroups of `threads`, the least cost first: rows use all of them, or also fewer, products as many as they
// have. With phases all use all. If results are batch-invariant, those with `order`.
Configs ranked(const Plan& problem, const Configs& known, int threads, bool fewer, bool phases, const SumOrder& order,
               const Target& target) {
  std::vector<std::pair<double, ProblemSchedule>> by_cost;
  const auto add = [&](const ProblemSchedule& c) {
    const auto same = [&](const auto& other) { return other.second == c; };
    if (c.threads() > threads || (phases && c.threads() != threads) || std::ranges::any_of(by_cost, same) ||
        is_cluster_of(problem, c.schedule))
      return;
    if (problem.family->why_not(c.schedule, problem, target)) return;
    if (target.batch_invariant() && problem.family->sum_order(problem, c.schedule, target) != order) return;
    by_cost.emplace_back(nominal_cost(problem, c.schedule, threads, target), c);
  };
  for (const ProblemSchedule& each : known) {
    add({each.name, problem.family->with_threads(each.schedule, threads, problem, target)});
    if (fewer) add(each);
  }
  std::ranges::stable_sort(by_cost, {}, &std::pair<double, ProblemSchedule>::first);
  Configs result;
  for (auto& [cost, c] : by_cost) result.push_back(std::move(c));
  return result;
}

std::size_t phase_of(const Plan& plan, std::size_t problem) {
  std::size_t phase = 0, end = plan.phases.empty() ? plan.problems.size() : plan.phases[0];
  while (problem >= end) end += plan.phases[++phase];
  return phase;
}

double matrix_bytes(const Plan& problem) {
  double bytes = 0;
  for (const Product& p : problem.products) bytes += static_cast<double>(p.n) * static_cast<double>(p.k()) * p.b.bits() / 8;
  return bytes;
}

// The CUs of a product that shares the chip with others of its phase: as many as it has of their bytes.
int share_of_cus(std::size_t number, const Plan& plan, const Target& target) {
  const Plan& problem = *plan.problems[number];
  double all = 0;
  for (std::size_t i = 0; i < plan.problems.size(); ++i)
    if (phase_of(plan, i) == phase_of(plan, number)) all += matrix_bytes(*plan.problems[i]);
  return std::max(1, static_cast<int>(target.compute_units() * matrix_bytes(problem) / all));
}

// As for a kernel of its own, of products on so many CUs.
Configs configs_alone(const Plan& problem, int cus, const Target& target) {
  Configs result;
  for (Schedule& c : problem.family->candidates_on(problem, target, cus)) {
    c.why.clear(); // that of all says it
    result.push_back({name_of(problem), std::move(c)});
  }
  return result;
}

std::string why(const FusedLaunchConfig& config, const Plan& plan) {
  const int threads = config.threads();
  std::string text = fmt::format("{} problems in workgroups of {} threads", config.problems.size(), threads);
  for (std::size_t i = 0; i < config.problems.size(); ++i) {
    const ProblemSchedule& own = config.problems[i];
    text += fmt::format("{} {} by {}", i == 0 ? ":" : ",", own.name, plan.problems[i]->family->name);
    if (own.threads() != threads) text += fmt::format(" with {} of them", own.threads());
  }
  return text;
}

// Adds what takes the first of all choices, then the second, and so on. Choices are of one number of threads, the most of them.
void add_ranks(std::vector<Candidate<FusedLaunchConfig>>& result, const std::vector<Configs>& choices, const Plan& plan, int threads,
               const Target& target) {
  if (std::ranges::any_of(choices, &Configs::empty)) return;
  const std::size_t ranks = std::ranges::max(choices, {}, &Configs::size).size();
  for (std::size_t rank = 0, fitting = 0; rank < ranks && fitting < max_of_a_size; ++rank) {
    FusedLaunchConfig config;
    for (const Configs& c : choices) config.problems.push_back(c[std::min(rank, c.size() - 1)]);
    if (config.threads() != threads || std::ranges::find(result, config, &Candidate<FusedLaunchConfig>::config) != result.end()) continue;
    if (rank + 1 < ranks && lds_of(config, plan, target) > target.lds_bytes()) continue; // the last one says why
    result.push_back({config, why(config, plan)});
    ++fitting;
  }
}

// Each problem of rows as it falls back, if the registers that it then has are there: waves that end at once have some too.
Candidate<FusedLaunchConfig> with_rows_fallen_back(const FusedLaunchConfig& first) {
  Candidate<FusedLaunchConfig> result{first, {}};
  for (ProblemSchedule& problem : result.config.problems) {
    const auto* const rows = std::get_if<RowwiseConfig>(&problem.schedule.config);
    if (rows == nullptr) continue;
    for (const auto& own : Rowwise::fallbacks(*rows)) {
      if (vgprs_of_wave(first.threads() / wave_size) < vgprs_of_waves_per_eu(own.config.waves_per_eu)) continue;
      problem.schedule.config = own.config, result.why = own.why;
    }
  }
  return result;
}

// All products with the first of their fallbacks, then with the second, and so on; one that has no more keeps its last.
std::vector<Candidate<FusedLaunchConfig>> with_products_fallen_back(const FusedLaunchConfig& first, const std::string& why) {
  std::vector<Candidate<FusedLaunchConfig>> result;
  for (std::size_t i = 0, more = 1; more > 0; ++i) {
    more = 0;
    Candidate<FusedLaunchConfig> next{result.empty() ? first : result.back().config, {}};
    for (std::size_t p = 0; p < first.problems.size(); ++p) {
      const auto* const gemm = std::get_if<GemmConfig>(&first.problems[p].schedule.config);
      if (gemm == nullptr) continue;
      const auto own = Gemm::fallbacks(*gemm);
      if (i >= own.size()) continue;
      next.config.problems[p].schedule.config = own[i].config;
      next.why = why.empty() ? own[i].why : fmt::format("{}, {}", why, own[i].why);
      ++more;
    }
    if (more > 0) result.push_back(std::move(next));
  }
  return result;
}

} // namespace

std::vector<Candidate<FusedLaunchConfig>> FusedLaunch::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  const Candidate<Config> rows = with_rows_fallen_back(first);
  if (!rows.why.empty()) result.push_back(rows);
  for (auto& each : with_products_fallen_back(first, {})) result.push_back(std::move(each));
  if (rows.why.empty()) return result;
  for (auto& each : with_products_fallen_back(rows.config, rows.why)) result.push_back(std::move(each));
  return result;
}

// First the schedules in which all problems use all threads, which are tried first where they cost as much as others. Products take all
// CUs each, or share them.
std::vector<Candidate<FusedLaunchConfig>> FusedLaunch::candidates(const Plan& plan, const Target& target) {
  std::vector<Candidate<Config>> result;
  std::vector<Configs> alone;
  std::vector<SumOrder> orders(plan.problems.size());
  if (target.batch_invariant()) {
    const int threads = invariant_threads(plan, target);
    for (std::size_t i = 0; i < orders.size(); ++i) orders[i] = invariant_order_of(*plan.problems[i], threads, target);
  }
  for (const bool shared : {false, true}) {
    if (shared && std::ranges::none_of(plan.problems, [](const auto& problem) { return is_product(*problem); })) break;
    alone.clear();
    std::set<int> sizes;
    for (std::size_t i = 0; i < plan.problems.size(); ++i) {
      alone.push_back(configs_alone(*plan.problems[i], shared ? share_of_cus(i, plan, target) : target.compute_units(), target));
      for (const ProblemSchedule& c : alone.back()) sizes.insert(c.threads());
    }
    for (const bool fewer : {false, true}) {
      if (fewer && !plan.phases.empty()) break; // all waves go on with the next phase
      for (const int threads : sizes) {
        std::vector<Configs> choices;
        for (std::size_t i = 0; i < alone.size(); ++i)
          choices.push_back(ranked(*plan.problems[i], alone[i], threads, fewer, !plan.phases.empty(), orders[i], target));
        add_ranks(result, choices, plan, threads, target);
      }
    }
  }
  if (!result.empty()) return result;
  Config last; // says what is wrong with a problem
  for (const Configs& c : alone) last.problems.push_back(c.back());
  return {{last, why(last, plan)}};
}

} // namespace kiln
