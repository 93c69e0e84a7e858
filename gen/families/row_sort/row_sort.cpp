// RowSort: what it computes, its schedules, its text, and what it promises.
#include "gen/families/row_sort/row_sort.h"
#include "gen/emit/row_text.h"
#include "gen/emit/values.h"
#include "gen/families/common/ranks.h"
#include "gen/families/common/streams.h"
#include "gen/families/rowwise/cluster.h"
#include "machine/chip.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::int64_t max_workspace = 1 << 28; // bytes, as for clusters

// Digits of 8 bits in which the keys of two numbers of a sign may differ: those bits of f32 that numbers of the type use.
int digits_of(DType type) { return size_bytes(type) == 1 || type == bf16 ? 2 : type == f16 ? 3 : 4; }

std::string row_of(const Body& body, const Expr& input) { return row_stream(body, body.tensor(input->name)); }

// A lane computes and stores its ranks one after the other.
std::string kernel_body(const Plan& plan, const RowSortConfig& c, const Target& target) {
  const Body& body = plan.body;
  ValueEmitter values(body, target, {}, "row");
  std::string text =
      fmt::format("  RowSort<config> row({}, {});\n", size_text(body.outer_dims), c.in_lds ? "nullptr" : workspace_name(plan));
  text += outer_indices(body);
  text += values.load_lane_inputs();
  text += fmt::format("  row.sort({});\n", row_of(body, top_of(body).operands()[0]));
  text += "  for (; row.has_rank(); row.next_rank()) {\n";
  text += fmt::format("  const auto {} = row.top();\n", values.unique_name(fmt::format("top{}", body.index_of(top_of(body)))));
  for (const Value& v : body.values)
    if (v.expr.op() == Op::pick)
      text += fmt::format("  const auto {} = row.picks({});\n", values.unique_name(fmt::format("picked{}", body.index_of(v.expr))),
                          row_of(body, v.expr.operands()[0]));
  int levels = 0;
  for (const Value& v : body.values) levels = std::max(levels, v.level);
  for (int level = 0; level <= levels; ++level) text += values.section_outputs(level);
  return text + "  }\n";
}

} // namespace

bool RowSort::can_compute(const AnalysedSpec& spec) {
  const auto needs_sort = [](const Value& v) {
    return v.expr.op() == Op::row_top &&
           (v.expr->step > max_selected_ranks || v.expr.operands()[0].shape().back().size() > max_selected_columns);
  };
  return spec.products.empty() && !spec.part && !spec.sort && std::ranges::any_of(spec.body.values, needs_sort);
}

void RowSort::lay_out(AnalysedSpec& spec) {
  lay_out_rows(spec.body);
  require_ranked_inputs(spec.body);
  for (const Value& v : spec.body.values)
    if (const OpKind kind = info(v.expr.op()).kind; kind == OpKind::row_reduce || kind == OpKind::scan)
      refuse_ranks(
          spec.body, fmt::format("there is a '{}'", info(v.expr.op()).name),
          fmt::format("take at most {} ranks of {} columns, or reduce in another kernel", max_selected_ranks, max_selected_columns));
}

// In LDS where it has room. Fewer waves count less of what each digit's bins cost, and take longer for what they have.
std::vector<Candidate<RowSortConfig>> RowSort::candidates(const Plan& plan, const Target& target) {
  std::vector<Candidate<Config>> result;
  for (const int waves : {16, 8, 4}) {
    Config c{.cols = static_cast<int>(plan.body.cols), .ranks = static_cast<int>(top_of(plan.body)->step), .waves = waves};
    c.in_lds = c.lds_bytes() <= target.lds_bytes();
    result.push_back(
        {c, fmt::format("{} waves sort a row in {}, 8 bits of its keys at a time", waves, c.in_lds ? "LDS" : "the workspace")});
  }
  return result;
}

std::optional<Refusal> RowSort::why_not(const Config& c, const Plan& plan, const Target& target) {
  const Body& body = plan.body;
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  if (c.cols != body.cols || c.ranks != top_of(body)->step)
    return refuse_schedule(plan, fields_text(c), "leave cols and ranks as they are");
  if (c.lds_bytes() > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                           "use in_lds=0");
  if (!c.in_lds && !max_rows(body))
    return refuse_schedule(plan,
                           fmt::format("rows of {} columns are sorted in the workspace, and no bound says how many rows there are", c.cols),
                           "give the rows a bound: dim rows[1..64]");
  if (!c.in_lds && *max_rows(body) > max_workspace / c.workspace_bytes())
    return refuse_schedule(plan, fmt::format("up to {} rows take a workspace of {} bytes each", *max_rows(body), c.workspace_bytes()),
                           "use a smaller bound of the rows");
  return {};
}

Demand RowSort::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const machine::Chip& chip = target.chip();
  Demand w{.workgroups = std::max(1.0, outer_size(plan.body, sizes)), .waves = static_cast<double>(c.waves)};
  w.per_cu = workgroups_per_cu(c.waves, vgprs_of_four_waves, static_cast<int>(c.lds_bytes()), target);
  const DType type = ranked_tensor(plan.body).dtype;
  const double items = static_cast<double>(c.wave_cols()) / wave_size; // of a lane
  const int digits = digits_of(type);
  w.far_bytes = static_cast<double>(c.cols) * size_bytes(type);
  // Each digit reads its list twice and writes it once.
  w.fill_bytes = w.loaded = 2 * w.far_bytes + (c.in_lds ? 0 : (digits - 1) * 2 * 8.0 * c.cols);
  w.written = c.in_lds ? 0 : digits * 8.0 * c.cols;
  w.in_flight = c.threads() * 8 * (c.in_lds ? 1 : 4);
  w.instructions = digits * items * 80; // counted in the ISA: eight ballots, and what follows from them
  // Two waits for LDS an item, for the list and for its bin; and for a digit three barriers, before them a sum over waves and one over
  // bins.
  const double lds = chip.lds_latency_cycles / chip.clock_ghz;
  w.chain_ns = digits * (2 * items * lds + 3 * (chip.barrier_cycles / chip.clock_ghz + 2 * lds));
  return w;
}

KernelSource RowSort::emit(const Plan& plan, const Config& c, const Target& target) {
  return assemble(plan, target,
                  {.header = std::string(name),
                   .config = config_text(c, "RowSortConfig"),
                   .threads = "config.threads()",
                   .body = kernel_body(plan, c, target),
                   .access = {.vec = 1},
                   .threads_per_block = c.threads(),
                   .units_per_block = 1,
                   .workspace_bytes = max_rows(plan.body).value_or(0) * c.workspace_bytes()});
}

Promises RowSort::promises(const Plan&, const Config& c, const Target&) {
  Promises p = promises_of_all();
  p.max_vgprs = vgprs_of_four_waves; // 16 waves of a workgroup, four a SIMD
  p.max_lds_bytes = static_cast<int>(c.lds_bytes());
  p.required = {"v_mbcnt_hi"};
  return p;
}

} // namespace kiln
