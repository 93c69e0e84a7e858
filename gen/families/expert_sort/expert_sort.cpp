// ExpertSort: one wave counts, whatever the number of tokens is.
#include "gen/families/expert_sort/expert_sort.h"
#include "gen/emit/row_text.h"
#include <cmath>
#include <fmt/format.h>

namespace kiln {

bool ExpertSort::can_compute(const AnalysedSpec& spec) { return spec.sort && spec.sort->alone; }
void ExpertSort::lay_out(AnalysedSpec& spec) { lay_out_rows(spec.body); }

std::vector<Candidate<ExpertSortConfig>> ExpertSort::candidates(const Plan& plan, const Target&) {
  return {{{.experts = static_cast<int>(plan.sort->count)}, "one wave counts the pairs of each expert, 64 pairs at a time"}};
}

std::optional<Refusal> ExpertSort::why_not(const Config& c, const Plan& plan, const Target&) {
  if (c.experts != plan.sort->count) return refuse_schedule(plan, fields_text(c), "leave experts as the plan has them");
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  return {};
}

Demand ExpertSort::demand(const Plan& plan, const Config& c, const Target& target, const RunTimeSizes& sizes) {
  const double pairs = outer_size(plan.body, sizes) * static_cast<double>(plan.body.cols), rounds = std::ceil(pairs / wave_size);
  const machine::Chip& chip = target.chip();
  Demand w{.workgroups = 1, .waves = 1};
  w.far_bytes = w.fill_bytes = w.loaded = w.in_flight = pairs * size_bytes(i32);
  w.written = (pairs + c.experts + 1) * size_bytes(i32);
  w.instructions = 2 * rounds * 60 + c.experts / double(wave_size) * 30; // as counted in the code
  w.chain_ns = (2 * rounds * (chip.lds_latency_cycles + chip.l2_latency_cycles) + c.experts / double(wave_size) * chip.lds_latency_cycles) /
               chip.clock_ghz;
  return w;
}

KernelSource ExpertSort::emit(const Plan& plan, const Config& c, const Target& target) {
  const SortParts& sort = *plan.sort;
  constexpr std::int64_t all = max_dim_size; // one workgroup, whatever the number of tokens is, if it is not zero
  return assemble(plan, target,
                  {.header = std::string(name),
                   .config = config_text(c, "ExpertSortConfig"),
                   .threads = "config.threads()",
                   .body = fmt::format("  ExpertSort<config>::run({}, {} * {}u, {}, {});\n", sort.experts, size_text(plan.body.outer_dims),
                                       sort.top, sort.order, sort.offsets),
                   .access = {.vec = 1},
                   .threads_per_block = c.threads(),
                   .units_per_block = all});
}

Promises ExpertSort::promises(const Plan&, const Config& c, const Target&) {
  Promises p = promises_of_all();
  p.max_lds_bytes = c.lds_bytes();
  p.max_barriers = 0; // one wave
  p.required = {"v_mbcnt_hi"};
  return p;
}

} // namespace kiln
