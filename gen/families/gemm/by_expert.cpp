// Gemm with a matrix for each expert: what it computes, its schedules, and the dense product that costs as much.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

// Blocks that pairs make when they spread over the experts.
int likely_blocks(const GemmConfig& c) {
  const int busy = std::min(c.experts.count, c.experts.pairs());
  return busy * ceil_div(ceil_div(c.experts.pairs(), busy), c.rows);
}

// Twice as many rows as an expert has pairs if they spread evenly: few experts have more, and read their weights again.
int rows_of_block(const ExpertsConfig& experts) {
  const int wanted = 2 * ceil_div(experts.pairs(), experts.count);
  return std::clamp(power_of_two_from(std::min(wanted, experts.tokens)), 16, 64);
}

std::string why_by_expert(const GemmConfig& c, const Target& target) {
  return fmt::format(
      "{} blocks of up to {} pairs, about {} steps of {} x {} bytes on {} workgroups for {} CUs, {} KiB of weights in flight each",
      likely_blocks(c), c.rows, as_one_product(c).steps(), c.tile_n * c.products, c.step_bytes(), c.workgroups, target.compute_units(),
      c.stages * c.b_loads() * c.waves);
}

// As many as can have parts of tiles; where tiles are not cut, as many as a product with the likely blocks has.
int workgroups_by_expert(const GemmConfig& c, int cus) {
  if (c.cuts_tiles()) return static_cast<int>(std::min<long long>(cus, 1LL * c.max_tile_parts() * c.tiles() * c.blocks()));
  return c.batch_invariant ? workgroups_of_parts(as_one_product(c), 1, cus) : with_workgroups(as_one_product(c), cus).workgroups;
}

// Waves of such a kernel that a chip holds, by their registers.
int waves_at_once(const GemmConfig& c, int cus) { return cus * simds_per_cu * gemm_waves_per_simd(c); }

} // namespace

GemmConfig as_one_product(GemmConfig c) {
  const bool cuts = c.cuts_tiles();
  c.n = static_cast<int>(std::min<long long>(1 << 24, static_cast<long long>(c.n) * likely_blocks(c)));
  c.experts = {};
  if (const auto parts = static_cast<int>(cuts ? c.parts_of(static_cast<unsigned>(c.tiles())) : 0); parts != 0)
    c.workgroups = parts * c.tiles();
  c.workgroups = static_cast<int>(std::min<long long>(c.workgroups, c.steps())); // others are for blocks that are not likely
  return c;
}

void require_by_expert(const AnalysedSpec& spec) {
  const auto subject = fmt::format("kernel '{}'", spec.spec.name());
  const Product& first = spec.products.front();
  if (first.sums_experts() && spec.products.size() > 1)
    throw UserError(subject, "it has two sums over experts", "use by_expert for a gate and its partner, and two kernels for two sums");
  if (reduces_rows(spec.body, spec.products, bound_of_rows(first)) || !spec.body.group_sizes.empty())
    throw UserError(subject, "it reduces rows behind a product by expert, or has one value a row there", "reduce in a kernel of its own");
  if (first.a.scales_by_group)
    throw UserError("operation 'transpose'", "it is the a_scale of a product by expert, whose tokens are read in the experts' order",
                    "give that product [tokens, groups]");
  const Shape space =
      first.sums_experts() ? Shape{first.a.memory.shape()[0], first.n} : Shape{first.a.memory.shape()[0], first.top(), first.n};
  if (spec.body.space != space)
    throw UserError(subject, fmt::format("its epilogue works on {}, the product is {}", to_text(spec.body.space), to_text(space)),
                    "give every operand the shape of the product, or one that broadcasts to it");
}

std::vector<Candidate<GemmConfig>> candidates_by_expert(const Plan& plan, const Target& target) {
  std::vector<Candidate<GemmConfig>> result;
  for (const int columns : {64, 32, 16}) {
    GemmConfig c = planned_config(plan, target);
    c.rows = rows_of_block(c.experts);
    c.tile_n = std::max(16, columns / c.products);
    c.workgroups = workgroups_by_expert(c, target.compute_units());
    c.stages = with_ring(as_one_product(c)).stages;
    c = with_vec(c);
    if (std::ranges::find(result, c, &Candidate<GemmConfig>::config) != result.end()) continue;
    const auto fits = [&](const GemmConfig& of) { return !why_invalid(of) && of.lds_bytes() <= target.lds_bytes() && fits_registers(of); };
    if (columns == 16 || fits(c)) result.push_back({c, why_by_expert(c, target)});
    std::optional<GemmConfig> short_tiles = c.batch_invariant ? std::nullopt : with_wave_a_tile(c);
    if (!short_tiles) continue;
    const long long tiles = 1LL * short_tiles->tiles() * likely_blocks(*short_tiles);
    short_tiles->workgroups = static_cast<int>(std::min<long long>(tiles, waves_at_once(*short_tiles, target.compute_units())));
    if (fits(*short_tiles)) result.push_back({*short_tiles, why_by_expert(*short_tiles, target)});
  }
  return result;
}

} // namespace kiln
