// ExpertSort: one wave counts, whatever the number of tokens is.
#include "gen/families/expert_sort/expert_sort.h"
#include "gen/emit/row_text.h"
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
