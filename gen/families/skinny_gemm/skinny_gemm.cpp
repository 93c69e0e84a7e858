// SkinnyGemm: its schedules, ordered by one score, and what is valid.
#include "gen/families/skinny_gemm/skinny_gemm.h"
#include "gen/families/skinny_gemm/register_model.h"
#include <algorithm>
#include <cmath>
#include <compare>

namespace kiln {
namespace {

constexpr double good_balance = 0.97;
// A comes from L2, as B does. Assumed: 2 KiB a clock of an XCD (16 channels of 128 bytes), so 54 bytes a clock of each CU of
// MI300X and 64 of MI350X; B, at the bandwidth of HBM, takes 8.3 and 13 of them. That leaves A 5.5 and 3.9 times as much as B.
constexpr double most_a_for_b = 4;

// How much longer A's bytes take than B's; 1 if they do not.
double a_excess(const SkinnyGemmConfig& c) { return std::max(1.0, gemm_a_loads(c) / (most_a_for_b * c.b_loads())); }

// Whether what is in flight behind a wait is enough, or all there is.
bool keeps_enough(const SkinnyGemmConfig& c) {
  return kib_behind_a_wait(c) >= kib_enough_behind_a_wait || static_cast<long long>(c.ring) * c.waves * c.workgroups >= c.steps();
}

// What decides between schedules of one plan, the most important first. Equal scores: the wider tile, which reads A less often.
struct Score {
  // The least time by A's bytes and by idle CUs, if that reads less of A than the schedule that leads by the rest of the score.
  bool saves_a = false;
  bool balanced = false;     // nearly all CUs are busy alike
  bool keeps_enough = false; // in flight behind a wait
  // A ring of two keeps one step in flight behind a wait. It is worse than the longer rings of narrower tiles, unless it keeps
  // as much in flight as they do, or enough.
  bool deep = false;
  auto operator<=>(const Score&) const = default;
};

struct Scored {
  SkinnyGemmConfig config;
  Score score;
};

// Gives scores to the schedules of one plan, which come widest tile first, and orders them.
std::vector<Scored> ordered(const std::vector<SkinnyGemmConfig>& configs, const Target& target) {
  int behind_longer_rings = 0;
  for (const SkinnyGemmConfig& c : configs)
    if (c.ring > 2) behind_longer_rings = std::max(behind_longer_rings, kib_behind_a_wait(c));
  std::vector<Scored> result;
  for (const SkinnyGemmConfig& c : configs)
    result.push_back({c,
                      {.balanced = gemm_balance(c, target) >= good_balance,
                       .keeps_enough = keeps_enough(c),
                       .deep = c.ring > 2 || kib_behind_a_wait(c) >= behind_longer_rings || keeps_enough(c)}});
  const auto sort = [&] { std::ranges::stable_sort(result, std::ranges::greater(), &Scored::score); };
  sort();
  const auto time = [&](const Scored& s) { return a_excess(s.config) / gemm_balance(s.config, target); };
  Scored& quickest = *std::ranges::min_element(result, {}, time);
  quickest.score.saves_a = a_excess(quickest.config) < a_excess(result.front().config);
  sort();
  return result;
}

// The most workgroups that share a tile: the parts that its sum has.
long long most_parts(const SkinnyGemmConfig& c) {
  const long long least_steps = c.steps() / c.workgroups; // of a workgroup
  return std::min<long long>(c.workgroups, (c.steps_per_tile() + least_steps - 2) / least_steps + 1);
}

std::string why(const SkinnyGemmConfig& c, const Target& target) {
  const std::string sums = !c.splits() ? "no tile is split"
                                       : fmt::format("a tile is split into up to {} parts, whose sums meet {}", most_parts(c),
                                                     c.atomics ? "by atomics" : "in fixed order");
  return fmt::format("{} steps of {} x {} bytes on {} workgroups keep {:.1f} % of {} CUs busy, {} KiB of weights in flight a workgroup, {}",
                     c.steps(), c.tile_n * c.products, c.step_bytes(), c.workgroups, 100 * gemm_balance(c, target), target.compute_units(),
                     c.ring * c.b_loads() * c.waves, sums);
}

} // namespace

double gemm_balance(const SkinnyGemmConfig& c, const Target& target) {
  const auto steps = static_cast<double>(c.steps());
  const auto cus = static_cast<double>(target.compute_units());
  const double most = std::ceil(steps / c.workgroups) * std::ceil(c.workgroups / cus);
  return steps / (most * cus);
}

int kib_behind_a_wait(const SkinnyGemmConfig& c) { return (c.ring - 1) * c.b_loads() * c.waves; }

std::vector<Candidate<SkinnyGemmConfig>> SkinnyGemm::candidates(const Plan& plan, const Target& target) {
  const Config planned = planned_config(plan, target);
  const auto fitted = [&](Config c) { return with_vec(with_ring(with_workgroups(c, target))); };
  std::vector<Config> configs;
  for (const int columns : {64, 32, 16}) {
    Config c = planned;
    c.tile_n = std::max(16, columns / c.products);
    c = fitted(c);
    if (why_invalid(c) || c.lds_bytes() > target.lds_bytes() || (!fits_registers(c) && columns > 16)) continue;
    if (std::ranges::find(configs, c) == configs.end()) configs.push_back(c);
  }
  if (configs.empty()) configs.push_back(fitted(planned)); // invalid: the caller says why
  std::vector<Candidate<Config>> result;
  for (const Scored& s : ordered(configs, target)) result.push_back({s.config, why(s.config, target)});
  return result;
}

std::vector<Candidate<SkinnyGemmConfig>> SkinnyGemm::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  for (Config c = first; (c.ring /= 2) > 0;) result.push_back({c, "a shorter ring"});
  return result;
}

void SkinnyGemm::after_setting(Config& c, std::string_view field, const Plan&, const Target& target) {
  if (field == "method") c = with_method(c, c.method, target);
}

void SkinnyGemm::require_valid(const Config& c, const Plan& plan, const Target& target) {
  if (planned_fields_text(c) != planned_fields_text(planned_config(plan, target)))
    reject_schedule(plan, fields_text(c), "leave rows, n, k, bits, group, preshuffled and products as the plan has them");
  if (c.direct && !target.has_wide_lds_dma())
    reject_schedule(plan, fmt::format("direct=1, but {} loads at most 4 bytes a lane straight into LDS", target.arch()), "use direct=0");
  if (const char* const invalid = why_invalid(c)) reject_schedule(plan, fields_text(c), invalid);
  if (c.lds_bytes() > target.lds_bytes())
    reject_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                    "use a smaller tile_n, fewer waves or fewer slots");
}

std::optional<std::int64_t> SkinnyGemm::addition_depth(const Config&) { return {}; } // MFMA's order is not public

} // namespace kiln
