// WideRanks: what it computes, its schedules, and what they promise.
#include "gen/families/wide_ranks/wide_ranks.h"
#include "gen/families/common/ranks.h"
#include "gen/families/common/streams.h"
#include "gen/families/rowwise/cluster.h"
#include "machine/chip.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::int64_t max_workspace = 1 << 28; // bytes, as for clusters
constexpr int loop_ahead = 4;                   // chunks in flight

bool is_wide(const Expr& top) { return top->step > max_wave_ranks || top.operands()[0].shape().back().size() > max_wave_columns; }

} // namespace

bool has_wide_ranks(const Body& body) {
  return std::ranges::any_of(body.values, [](const Value& v) { return v.expr.op() == Op::row_top && is_wide(v.expr); });
}

bool WideRanks::can_compute(const AnalysedSpec& spec) {
  return spec.products.empty() && !spec.part && !spec.sort && has_wide_ranks(spec.body);
}

void WideRanks::lay_out(AnalysedSpec& spec) {
  lay_out_rows(spec.body);
  require_ranked_inputs(spec.body);
}

// One to four chunks for each workgroup of a row, so that few rows are on many CUs; rows without a bound have a workgroup each.
std::vector<Candidate<WideRanksConfig>> WideRanks::candidates(const Plan& plan, const Target&) {
  std::vector<Candidate<Config>> result;
  const Body& body = plan.body;
  const int widest = 16 / std::max(1, size_bytes(ranked_tensor(body).dtype));
  for (const int vec : {widest, std::max(1, widest / 2)}) {
    Config c{.cols = static_cast<int>(body.cols), .ranks = static_cast<int>(top_of(body)->step), .vec = vec};
    const int chunks = c.streamed().row_chunks();
    for (int each = 1; each <= chunks; ++each) {
      if (chunks % each != 0 || (each != chunks && (each > 8 || !max_rows(body)))) continue;
      c.tiles = chunks / each;
      c.prefetch_depth = std::min(each, loop_ahead);
      result.push_back({c, fmt::format("{} workgroups read a row, {} chunks of {} a lane; the last one ranks", c.tiles, each, vec)});
    }
  }
  return result;
}

std::optional<Refusal> WideRanks::why_not(const Config& c, const Plan& plan, const Target& target) {
  const Body& body = plan.body;
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  if (c.cols != body.cols || c.ranks != top_of(body)->step)
    return refuse_schedule(plan, fields_text(c), "leave cols and ranks as they are");
  if (c.vec * size_bytes(ranked_tensor(body).dtype) > 16)
    return refuse_schedule(plan, fmt::format("vec is {} elements of {}", c.vec, to_string(ranked_tensor(body).dtype)),
                           "load 16 bytes at most");
  if (c.tiles > 1 && !max_rows(body))
    return refuse_schedule(plan, fmt::format("tiles is {}, and no bound says how many rows there are", c.tiles),
                           "use tiles=1, or give the rows a bound: dim rows[1..64]");
  if (c.tiles > 1 && *max_rows(body) * c.workspace_words() * 4 > max_workspace)
    return refuse_schedule(
        plan, fmt::format("up to {} rows take a workspace of {} bytes", *max_rows(body), *max_rows(body) * c.workspace_words() * 4),
        "use tiles=1, or a smaller bound of the rows");
  if (c.lds_bytes() > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                           "use more tiles");
  return {};
}

Demand WideRanks::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const machine::Chip& chip = target.chip();
  const double rows = outer_size(plan.body, sizes), bytes = size_bytes(ranked_tensor(plan.body).dtype);
  Demand w{.workgroups = std::max(1.0, rows) * c.tiles, .waves = static_cast<double>(c.waves())};
  const double of_part = static_cast<double>(c.cols) / c.tiles, chunks = c.streamed().chunks();
  w.per_cu = workgroups_per_cu(c.waves(), vgprs_of_four_waves, c.lds_bytes(), target);
  w.far_bytes = w.fill_bytes = w.loaded = of_part * bytes;
  w.in_flight = c.threads() * c.vec * bytes * c.prefetch_depth;
  w.written = of_part / Config::group * 4;
  w.instructions = chunks * (c.vec + 16); // maxima, and three steps across lanes
  // The last workgroup: what was left, candidates, about 15 barriers with an access to LDS before each.
  const double steps = 15 * (chip.barrier_cycles + chip.lds_latency_cycles) / chip.clock_ghz;
  w.exit_ns = steps + 2 * chip.l2_latency_cycles / chip.clock_ghz + (c.tiles > 1 ? 2 * chip.atomic_ns : 0);
  return w;
}

Promises WideRanks::promises(const Plan&, const Config& c, const Target&) {
  Promises p = promises_of_all();
  p.max_vgprs = vgprs_of_four_waves; // 16 waves of a workgroup, four a SIMD
  p.max_lds_bytes = c.lds_bytes();
  p.required = {"ds_add_u32"};
  return p;
}

} // namespace kiln
