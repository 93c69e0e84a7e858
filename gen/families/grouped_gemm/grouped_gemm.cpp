// GroupedGemm: which specs it takes, its schedules, and what they promise about the ISA.
#include "gen/families/grouped_gemm/grouped_gemm.h"
#include "gen/families/skinny_gemm/register_model.h"
#include "gen/families/skinny_gemm/skinny_gemm.h"
#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// What skinny GEMM would plan for the matrix of one expert and all tokens.
GroupedGemmConfig planned_groups(const Plan& plan, const Target& target) {
  const Product& first = plan.products.front();
  GroupedGemmConfig c{.experts = static_cast<int>(first.experts()),
                      .top = static_cast<int>(first.top()),
                      .expert_n = static_cast<int>(first.rows_of_b()),
                      .of_pairs = first.a.shape().size() == 3,
                      .sums = first.sums_experts(),
                      .tile = planned_config(plan, target)};
  c.tokens = std::exchange(c.tile.rows, 16);
  c.tile.open = true;
  return c;
}

// Blocks that pairs make when they spread over the experts.
int likely_blocks(const GroupedGemmConfig& c) {
  const int busy = std::min(c.experts, c.pairs());
  return busy * ceil_div(ceil_div(c.pairs(), busy), c.tile.rows);
}

// One product whose columns are those of all likely blocks: it streams as much, in as many steps.
SkinnyGemmConfig in_one(const GroupedGemmConfig& c) {
  SkinnyGemmConfig one = c.tile;
  one.open = false;
  one.n = static_cast<int>(std::min<long long>(1 << 24, static_cast<long long>(c.tile.n) * likely_blocks(c)));
  return one;
}

// Twice as many rows as an expert has pairs if they spread evenly: few experts have more, and read their weights again.
int rows_of_block(const GroupedGemmConfig& c) {
  const int wanted = 2 * ceil_div(c.pairs(), c.experts);
  return std::clamp(power_of_two_from(std::min(wanted, c.tokens)), 16, 64);
}

std::string why_groups(const GroupedGemmConfig& c, const Target& target) {
  return fmt::format(
      "{} blocks of up to {} pairs, about {} steps of {} x {} bytes on {} workgroups for {} CUs, {} KiB of weights in flight each",
      likely_blocks(c), c.tile.rows, in_one(c).steps(), c.tile.tile_n * c.tile.products, c.tile.step_bytes(), c.tile.workgroups,
      target.compute_units(), c.tile.ring * c.tile.b_loads() * c.tile.waves);
}

} // namespace

bool GroupedGemm::takes(const AnalysedSpec& spec) { return !spec.products.empty() && spec.products.front().by_expert(); }

void GroupedGemm::lay_out(AnalysedSpec& spec) {
  require_products(spec);
  const auto subject = fmt::format("kernel '{}'", spec.spec.name());
  if (spec.products.front().sums_experts() && spec.products.size() > 1)
    throw UserError(subject, "it has two sums over experts", "use by_expert for a gate and its partner, and two kernels for two sums");
  lay_out_rows(spec.body);
  if (reduces_rows(spec.body, spec.products) || !spec.body.group_sizes.empty())
    throw UserError(subject, "it reduces rows behind a product by expert, or has one value a row there", "reduce in a kernel of its own");
  const Product& first = spec.products.front();
  if (first.a_scales_by_group)
    throw UserError("operation 'transpose'", "it is the a_scale of a product by expert, whose tokens are read in the experts' order",
                    "give that product [tokens, groups]");
  const Shape space = first.sums_experts() ? Shape{first.a.shape()[0], first.n} : Shape{first.a.shape()[0], first.top(), first.n};
  if (spec.body.space != space)
    throw UserError(subject, fmt::format("its epilogue works on {}, the product is {}", to_text(spec.body.space), to_text(space)),
                    "give every operand the shape of the product, or one that broadcasts to it");
}

std::vector<Candidate<GroupedGemmConfig>> GroupedGemm::candidates(const Plan& plan, const Target& target) {
  std::vector<Candidate<Config>> result;
  for (const int columns : {64, 32, 16}) {
    Config c = planned_groups(plan, target);
    c.tile.rows = rows_of_block(c);
    c.tile.tile_n = std::max(16, columns / c.tile.products);
    const SkinnyGemmConfig one = with_ring(with_workgroups(in_one(c), target.compute_units()));
    c.tile.workgroups = one.workgroups;
    c.tile.ring = one.ring;
    c.tile = with_vec(c.tile);
    if (columns == 16 || (!why_invalid(c) && c.lds_bytes() <= target.lds_bytes() && fits_registers(c.tile)))
      result.push_back({c, why_groups(c, target)});
  }
  return result;
}

std::vector<Candidate<GroupedGemmConfig>> GroupedGemm::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  for (Config c = first; (c.tile.ring /= 2) > 0;) result.push_back({c, "a shorter ring"});
  return result;
}

void GroupedGemm::require_valid(const Config& c, const Plan& plan, const Target& target) {
  if (planned_fields_text(c) != planned_fields_text(planned_groups(plan, target)))
    reject_schedule(plan, fields_text(c), "leave experts, top, tokens, n, k, bits, group and products as the plan has them");
  if (const char* const invalid = why_invalid(c)) reject_schedule(plan, fields_text(c), invalid);
  if (c.lds_bytes() > target.lds_bytes())
    reject_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                    "use a smaller tile_n or fewer waves");
}

Demand GroupedGemm::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  Demand w = SkinnyGemm::demand(plan, in_one(c), target, sizes);
  const ChipTerms& chip = chip_terms(target);
  // Before the first load: offsets come from memory, the lists go through LDS.
  w.lead += 40 + 30.0 * ceil_div(c.experts, wave_size);
  w.chain_ns += chip.hbm_latency_ns + (chip.barrier_cycles + chip.lds_latency_cycles) / chip.clock_ghz;
  if (c.sums) w.exit_ns += chip.release_ns + chip.atomic_ns + chip.l2_latency_cycles / chip.clock_ghz;
  return w;
}

Promises GroupedGemm::promises(const Plan& plan, const Config& c, const Target&) {
  Promises p{.max_vgprs = vgprs_of_wave(c.tile.waves), .max_lds_bytes = c.lds_bytes()};
  const SkinnyGemmConfig& tile = c.tile;
  // Weights and activations come 16 bytes at a time; the epilogue, scales, offsets, pairs and weights of experts by less.
  const int epilogue = tile.chunks() * 8 * (tile.products * 4 + static_cast<int>(plan.body.tensors.size()) * 8) + 1 +
                       4 * tile.parts_at_a_time() * tile.chunks() * tile.products * tile.vec; // parts of tiles and a generation
  const int lists = 2 * ceil_div(c.experts, wave_size) + 16 + (c.sums ? 8 * c.top : 0);
  p.global_loads = {.min_bytes = 16,
                    .exceptions = static_cast<std::uint32_t>(epilogue + lists + 8 * gemm_scale_loads(tile)),
                    .at_least = static_cast<std::uint32_t>(tile.ring * tile.b_loads())};
  p.no_findings = {"HAZ002"};
  promise_ring(p, tile);
  return p;
}

std::optional<std::int64_t> GroupedGemm::addition_depth(const Config&) { return {}; } // MFMA's order is not public

} // namespace kiln
