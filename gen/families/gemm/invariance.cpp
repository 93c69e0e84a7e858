// Batch invariance of products: the order of an element's sum, and the one that all bounds of rows have.
#include "gen/families/gemm/gemm.h"
#include "gen/families/gemm/register_model.h"
#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace kiln {
namespace {

constexpr int reference_rows = 16; // for which parts are chosen: the rows of one matrix instruction

// Equal parts of a tile, with a step for each wave at least, in as many workgroups as CUs at most. If rows are quantised: in as many at
// least, up to twice as many, for a workgroup has the rows' part of k in LDS. By the simulation of
// examples/manifests/norm_swiglu_quant.kiln with 8 rows on MI300X, 34.9 us in 224 workgroups, 21.5 in 448; the cost model has 35.0
// and 39.0.
std::vector<int> part_counts(const GemmConfig& c, int cus) {
  std::vector<int> counts;
  const int least = c.a.quantises ? cus : 0, most = c.a.quantises ? 2 * cus : cus;
  for (int parts = 1; parts * c.tiles() <= most && parts * c.waves <= c.steps_per_tile(); ++parts)
    if (c.steps_per_tile() % parts == 0 && parts * c.tiles() >= least) counts.push_back(parts);
  if (counts.empty()) counts.push_back(1);
  return counts;
}

// A tile of about `columns`, of all products.
GemmConfig reference_config(const Plan& plan, const Target& target, int columns) {
  GemmConfig c = planned_config(plan, target.with_batch_invariance(), reference_rows);
  c.tile_n = std::max({16, columns / c.products, c.epilogue_group});
  return c;
}

// Whether the waves have the same steps of a tile, or of its part, as if they shared them one by one.
bool shares_steps(const GemmConfig& c) {
  if (c.crosses() && !c.batch_invariant && !c.by_expert() && c.splits()) return c.wave_unit() == 1;
  const long long count = c.splits() && !c.by_expert() ? c.steps() / c.workgroups : c.steps_per_tile(), unit = c.wave_unit();
  for (long long wave = 1; wave < c.waves; ++wave)
    if (std::min((count + unit - 1) / unit * wave / c.waves * unit, count) != count * wave / c.waves) return false;
  return true;
}

std::string partition_of(const GemmConfig& c) {
  if (!c.batch_invariant && c.crosses() && c.splits())
    return fmt::format("runs of {} workgroups over tiles of {},", c.workgroups, c.tile_n);
  const int parts = c.splits() ? c.workgroups / c.tiles() : 1;
  return fmt::format("k in {} part{}", parts, parts == 1 ? "," : "s,");
}

} // namespace

int workgroups_of_parts(const GemmConfig& c, int parts, int cus) { return parts > 1 ? parts * c.tiles() : std::min(c.tiles(), cus); }

int invariant_parts(const Plan& plan, const Target& target) {
  const int cus = target.compute_units();
  const DType a = plan.products.front().a.memory.dtype();
  double least = std::numeric_limits<double>::infinity();
  int best = 1;
  for (const int columns : {64, 32, 16}) {
    GemmConfig c = reference_config(plan, target, columns);
    for (const int parts : part_counts(c, cus)) {
      c.workgroups = workgroups_of_parts(c, parts, cus);
      for (const bool staged : {false, true}) {
        if (staged && !c.a.quantises) continue;
        c.staged = staged;
        const GemmConfig fitted = with_vec(with_ring(c));
        if (why_invalid(fitted) || fitted.lds_bytes() > target.lds_bytes() || !fits_registers(fitted)) continue;
        const Demand demand = demand_of_rows(fitted, reference_rows, a, target);
        if (const double cost = cost_of(demand, target.chip()).total(); cost < least) least = cost, best = parts;
      }
    }
  }
  return best;
}

SumOrder Gemm::sum_order(const Plan&, const Config& c, const Target&) {
  SumOrder result;
  if (c.atomics) result.depends_on = "parts of a tile are added by atomics, in the order of their arrival";
  else if (c.by_expert() && !c.whole_tiles())
    result.depends_on = "workgroups share the steps of all experts, so that what other tokens chose decides where a sum is split";
  result.order = fmt::format("{} method {}, loads {}, {} waves that share {}", partition_of(c), to_string(c.method), c.loads, c.waves,
                             shares_steps(c) ? "steps" : fmt::format("turns of {} steps", c.wave_unit()));
  if (c.whole_lines()) result.order += " of whole lines";
  if (c.unpacks_in_order()) result.order += ", weights unpacked in order";
  if (c.rows_at_end) result.order += ", rows behind all tiles";
  result.order +=
      c.epilogue_group ? fmt::format(", groups of {} in a tile by {}", c.epilogue_group, c.vec) : fmt::format(", epilogue by {}", c.vec);
  return result;
}

SumOrder Gemm::invariant_order(const Plan& plan, const Target& target) {
  GemmConfig c = reference_config(plan, target, 16);
  const bool by_expert = c.by_expert();
  c.workgroups = by_expert ? 1 : workgroups_of_parts(c, invariant_parts(plan, target), target.compute_units());
  return sum_order(plan, with_vec(c), target);
}

} // namespace kiln
