// Gemm: its schedules, and what is valid.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include "gen/families/rowwise/rowwise.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int narrowest_tile = 16, many_parts = 8;

// Workgroups that take whole tiles, or whole parts of tiles, each: none crosses from a tile to another, and if a workgroup has whole
// tiles, no sums meet. Beside them the one workgroup a CU that balances best.
std::vector<int> workgroup_counts(const GemmConfig& c, int cus) {
  std::vector<int> counts{with_workgroups(c, cus).workgroups};
  const int most = static_cast<int>(std::min<long long>(c.steps(), cus));
  const auto add = [&](int count) {
    if (count >= 1 && count <= most && std::ranges::find(counts, count) == counts.end()) counts.push_back(count);
  };
  if (c.tiles() <= cus) {
    add(c.tiles());
    add(cus / c.tiles() * c.tiles());
    // With few columns per workgroup on every CU takes so little that it mostly starts and ends.
    if (c.n / narrowest_tile * many_parts <= cus)
      for (const int parts : {2, 4}) add(parts * c.tiles());
  } else {
    int count = cus;
    while (c.tiles() % count) --count;
    if (2 * count > cus) add(count);
  }
  return counts;
}

// The most workgroups that share a tile: the parts that its sum has.
long long max_parts(const GemmConfig& c) {
  const long long min_steps = c.steps() / c.workgroups; // of a workgroup
  return std::min<long long>(c.workgroups, (c.steps_per_tile() + min_steps - 2) / min_steps + 1);
}

// Whether dot instructions take a's numbers as they are.
bool takes_dots(const Plan& plan, const Target& target) { return plan.products.front().a.memory.dtype() == f16 || target.has_dot2_bf16(); }

// Whether the target multiplies what waves share: numbers of MX formats only with their scales, or each wave would convert all rows.
bool shares_rows_on(const GemmConfig& c, const Target& target) { return !c.a.mx() || target.has_scaled_mfma(); }

// One row of 16-bit numbers: a dot instruction does as much as a tile of 16 x 16 of which one row is used, and its loads are whole lines.
std::vector<GemmConfig> dot_configs(const GemmConfig& planned, const Plan& plan, const Target& target) {
  std::vector<GemmConfig> configs;
  if (planned.batch_invariant || planned.rows != 1 || planned.a.bits != 16 || planned.b.bits != 16 || planned.rows_at_end ||
      planned.epilogue_group != 0 || !takes_dots(plan, target))
    return configs;
  GemmConfig c = planned;
  c.tile_n = narrowest_tile;
  for (const int workgroups : workgroup_counts(c, target.compute_units())) {
    configs.push_back(with_method(c, GemmMethod::dot, target));
    configs.back().workgroups = workgroups;
  }
  return configs;
}

// Short rows of B that are many: waves with a tile each instead of four that share its steps, and meet behind it.
std::vector<GemmConfig> one_wave_configs(const GemmConfig& planned, const Target& target) {
  std::vector<GemmConfig> configs;
  if (planned.batch_invariant || planned.rows_at_end || planned.a.quantises) return configs;
  for (const int columns : {64, 32, 16}) {
    GemmConfig c = planned;
    c.tile_n = std::max({narrowest_tile, columns / c.products, c.epilogue_group});
    c.workgroups = c.tiles();
    const auto one_wave = with_wave_a_tile(c);
    if (one_wave && c.tiles() > target.compute_units() && !why_invalid(*one_wave) && one_wave->lds_bytes() <= target.lds_bytes())
      configs.push_back(*one_wave);
  }
  return configs;
}

// Whether numbers become wider in registers, each by a chain of instructions. Both operands of MX formats in tiles of 16 columns are left
// out: the loops that LLVM 21 makes of them wait for later steps, and break the contract.
bool widens(const GemmConfig& c, const Target& target) {
  return c.b.bits < c.a.bits || (c.a.mx() && !target.has_scaled_mfma() && c.products * c.tile_n > narrowest_tile);
}

// A workgroup a tile, or some a tile where numbers are widened, and two to four of them at once on a CU, with shorter rings: a SIMD's
// other waves issue while one waits for the instruction before.
std::vector<GemmConfig> crowded_configs(const GemmConfig& planned, const Target& target) {
  std::vector<GemmConfig> configs;
  if (planned.batch_invariant || planned.rows_at_end || planned.a.quantises) return configs;
  for (const int columns : {64, 32, 16})
    for (int parts = 1; parts <= 4; ++parts) {
      GemmConfig c = planned;
      c.tile_n = std::max({narrowest_tile, columns / c.products, c.epilogue_group});
      if (!widens(c, target) && (parts > 1 || c.a.mx())) break;
      c.workgroups = parts * c.tiles();
      const int of_cu = ceil_div(c.workgroups, target.compute_units());
      if (of_cu < 2 || of_cu > 4 || c.steps_per_tile() < parts * c.waves) continue;
      c = with_ring(c);
      while (c.stages > 2 && gemm_waves_per_simd(c) * simds_per_cu < of_cu * c.waves) --c.stages;
      c = with_vec(c);
      if (!why_invalid(c) && fits_registers(c) && of_cu * c.lds_bytes() <= target.lds_bytes()) configs.push_back(c);
    }
  return configs;
}

// Method shared_rows, with blocks of 32 to 64 rows: from so many rows on A is what a CU mostly reads, if each wave reads all of it. Those
// of MX formats have scales beside them, each a line of its own.
std::vector<GemmConfig> shared_configs(const GemmConfig& planned, const Target& target) {
  const int many_rows = planned.a.mx() ? 32 : 48;
  std::vector<GemmConfig> configs;
  if (planned.rows <= many_rows || !shares_rows_on(planned, target)) return configs;
  for (int rows = max_shared_rows; rows >= 32; rows -= 16) {
    const GemmConfig c = with_shared_rows(planned, ceil_div(planned.rows, rows));
    if (!why_invalid(c) && fits_registers(c) && std::ranges::find(configs, c) == configs.end()) configs.push_back(c);
  }
  return configs;
}

std::string why(const GemmConfig& c, const Target& target) {
  const std::string sums = !c.splits() ? "no tile is split"
                                       : fmt::format("a tile is split into up to {} parts, whose sums meet {}", max_parts(c),
                                                     c.atomics ? "by atomics" : "in fixed order");
  return fmt::format("{} steps of {} x {} bytes on {} workgroups keep {:.1f} % of {} CUs busy, {} KiB of weights in flight a workgroup, {}",
                     c.steps(), c.tile_n * c.products, c.step_bytes(), c.workgroups, 100 * gemm_balance(c, target), target.compute_units(),
                     c.stages * c.b_loads() * c.waves, sums);
}

// The config's ring, or a shorter one that the cost model has quicker: one that has more in flight may leave a wave more steps.
GemmConfig with_quickest_ring(const GemmConfig& config, const Plan& plan, const Target& target) {
  const auto cost = [&](const GemmConfig& c) {
    double sum = 0;
    for (const RunTimeSizes& sizes : nominal_sizes(plan))
      sum += std::log(cost_of(Gemm::demand(plan, c, target, sizes), target.chip()).total());
    return sum;
  };
  GemmConfig best = config;
  for (std::optional<GemmConfig> ring = with_shorter_ring(config); ring; ring = with_shorter_ring(*ring))
    if (cost(*ring) < cost(best)) best = *ring;
  return best;
}

} // namespace

double gemm_balance(const GemmConfig& c, const Target& target) {
  const auto steps = static_cast<double>(c.steps());
  const auto cus = static_cast<double>(target.compute_units());
  const double most = std::ceil(steps / c.run_unit() / c.workgroups) * c.run_unit() * std::ceil(c.workgroups / cus);
  return steps / (most * cus);
}

std::vector<Candidate<GemmConfig>> Gemm::candidates_on(const Plan& plan, const Target& target, int cus) {
  if (plan.products.front().by_expert()) return candidates_by_expert(plan, target);
  const Config planned = planned_config(plan, target);
  const int parts = planned.batch_invariant ? invariant_parts(plan, target) : 0;
  const auto counts = [&](const Config& c) {
    return planned.batch_invariant ? std::vector<int>{workgroups_of_parts(c, parts, cus)} : workgroup_counts(c, cus);
  };
  std::vector<Config> configs;
  const auto add_one = [&](Config c, bool narrowest) {
    // Tiles of wide groups cannot be narrower: fewer waves then have sums in LDS.
    while (c.epilogue_group && !c.staged && !c.batch_invariant && with_vec(c).lds_bytes() > target.lds_bytes() && c.waves > 1) c.waves /= 2;
    c = with_vec(with_ring(c));
    if (Config shorter = c; narrowest && c.loads > 1 && !fits_registers(c)) { // groups of columns may ask for tiles that shorter steps fit
      shorter.loads /= 2;
      shorter = with_vec(with_ring(shorter));
      if (!why_invalid(shorter)) c = shorter;
    }
    if (why_invalid(c) || c.lds_bytes() > target.lds_bytes() || (!fits_registers(c) && !narrowest)) return;
    if (c.loads > planned.loads && c.stages == 1 && c.steps() > c.workgroups * c.waves) return; // nothing is in flight while a step is used
    if (c = with_quickest_ring(c, plan, target); std::ranges::find(configs, c) == configs.end()) configs.push_back(c);
  };
  const auto add = [&](Config c, bool narrowest) {
    add_one(c, narrowest);
    Config staged = c, wide = c;
    staged.staged = true; // in LDS, if that has room
    if (c.a.quantises) add_one(staged, false);
    wide.waves = 2 * simds_per_cu; // a step is chains of instructions: a SIMD's second wave issues meanwhile
    if (!c.batch_invariant && (c.a.quantises || widens(c, target))) add_one(wide, false);
  };
  // Loads of 64 bytes of a row, or of two halves of a line behind each other, which no cache has to keep in between.
  for (const int loads : {planned.loads, planned.batch_invariant ? planned.loads : 2})
    for (const int columns : {64, 32, 16}) {
      Config c = planned;
      c.loads = loads;
      c.tile_n = std::max({narrowest_tile, columns / c.products, c.epilogue_group});
      for (const int workgroups : counts(c)) {
        c.workgroups = workgroups;
        add(c, columns == 16);
      }
    }
  if (cus == target.compute_units()) {
    for (const Config& c : dot_configs(planned, plan, target)) add_one(c, false);
    std::ranges::copy(one_wave_configs(planned, target), std::back_inserter(configs));
    for (const Config& c : crowded_configs(planned, target))
      if (std::ranges::find(configs, c) == configs.end()) configs.push_back(c);
    std::ranges::copy(shared_configs(planned, target), std::back_inserter(configs));
  }
  if (configs.empty()) { // invalid: the caller says why
    Config c = planned;
    c.tile_n = std::max(c.tile_n, c.epilogue_group);
    c.workgroups = planned.batch_invariant ? counts(c).front() : with_workgroups(c, cus).workgroups;
    configs.push_back(with_vec(with_ring(c)));
  }
  std::vector<Candidate<Config>> result;
  for (const Config& c : configs) result.push_back({c, why(c, target)});
  return result;
}

std::vector<Candidate<GemmConfig>> Gemm::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  for (Config c = first; (c.stages /= 2) >= (c.shares_rows() ? min_shared_stages : 1);) result.push_back({c, "fewer stages"});
  return result;
}

std::string_view Gemm::method(const Config& c) { return c.atomics ? "atomics" : to_string(c.method); }

std::vector<GemmConfig> Gemm::other_methods(const Config& config, const Target& target, const Allowed& allowed) {
  std::vector<Config> result;
  if (config.by_expert()) return result;
  for (const auto& [other, word] : EnumText<GemmMethod>::words) {
    if (other == config.method || (other == GemmMethod::sparse && !allowed.sparse)) continue;
    result.push_back(with_method(config, other, target));
    if (result.back().has_producers() || result.back().shares_rows()) continue; // their fields belong together
    const Config fitted = result.back();
    for (Config c = fitted; const int workgroups : workgroup_counts(fitted, target.compute_units())) {
      c.workgroups = workgroups;
      result.push_back(with_vec(with_ring(c)));
    }
  }
  if (allowed.atomics && config.splits()) {
    result.push_back(config);
    result.back().atomics = true;
  }
  return result;
}

void Gemm::after_setting(Config& c, std::string_view field, const Plan&, const Target& target) {
  if (field == "method") c = with_method(c, c.method, target);
}

std::optional<Refusal> Gemm::why_not(const Config& c, const Plan& plan, const Target& target) {
  if (field_values(c, false) != field_values(planned_config(plan, target), false))
    return refuse_schedule(plan, fields_text(c), "leave rows, experts, n, k, bits, group, preshuffled and products as the plan has them");
  if (c.direct && !target.has_wide_lds_dma())
    return refuse_schedule(plan, fmt::format("direct=1, but {} loads at most 4 bytes per lane straight into LDS", target.arch()),
                           "use direct=0");
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  if (c.shares_rows() && !shares_rows_on(c, target))
    return refuse_schedule(plan, fmt::format("method=shared_rows, but {} has no matrix instruction with scales", target.arch()),
                           "use method=matrix");
  if (c.rows_at_end && c.lds_bytes() + lds_bytes(plan.body, rows_at_end(plan.body, c)) > target.lds_bytes())
    return refuse_schedule(plan,
                           fmt::format("it takes {} bytes of LDS, and its rows at the end {} more; {} has {}", c.lds_bytes(),
                                       lds_bytes(plan.body, rows_at_end(plan.body, c)), target.arch(), target.lds_bytes()),
                           "use a smaller tile_n or fewer waves");
  if (c.lds_bytes() > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                           "use a smaller tile_n, fewer waves or fewer slots");
  return {};
}

std::optional<std::int64_t> Gemm::addition_depth(const Config&) { return {}; } // MFMA's order is not public

} // namespace kiln
