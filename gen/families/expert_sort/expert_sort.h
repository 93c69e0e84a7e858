// ExpertSort: pairs of a token and an expert in the order of their experts.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "templates/expert_sort_config.h"

namespace kiln {

template <MaybeConst<ExpertSortConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "experts", .settable = false}, c.experts);
}

struct ExpertSort {
  using Config = ExpertSortConfig;
  static constexpr std::string_view name = "expert_sort";
  static constexpr std::string_view remedy = "use fewer experts";
  static constexpr std::string_view words[] = {"ExpertSort", "ExpertSortConfig", "sort_by_expert"};

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config&) { return 0; }
};

} // namespace kiln
