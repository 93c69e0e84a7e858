// RowSort: rows in the order of their elements, where more of them are wanted than WideRanks selects, or from wider rows.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "templates/row_sort_config.h"

namespace kiln {

template <MaybeConst<RowSortConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "cols", .settable = false}, c.cols);
  visit(Field{.name = "ranks", .settable = false}, c.ranks);
  visit(Field{"waves"}, c.waves);
  visit(Field{"in_lds"}, c.in_lds);
}

struct RowSort {
  using Config = RowSortConfig;
  static constexpr std::string_view name = "row_sort";
  static constexpr std::string_view remedy = "take fewer ranks";
  static constexpr std::string_view words[] = {"RowSort", "RowSortConfig"};

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config&) { return 0; }
};

} // namespace kiln
