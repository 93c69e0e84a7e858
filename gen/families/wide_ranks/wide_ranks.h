// WideRanks: the largest elements of rows too wide for a wave, and what is computed from them.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "templates/wide_ranks_config.h"

namespace kiln {

template <MaybeConst<WideRanksConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "cols", .settable = false}, c.cols);
  visit(Field{.name = "ranks", .settable = false}, c.ranks);
  visit(Field{"vec"}, c.vec);
  visit(Field{"tiles"}, c.tiles);
  visit(Field{"prefetch_depth"}, c.prefetch_depth);
}

struct WideRanks {
  using Config = WideRanksConfig;
  static constexpr std::string_view name = "wide_ranks";
  static constexpr std::string_view remedy = "take fewer ranks, or of fewer columns";
  static constexpr std::string_view words[] = {"WideRanks", "WideRanksConfig"};

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  // Sums are those of ranks: in a wave, and wave after wave.
  static std::optional<std::int64_t> addition_depth(const Config&) { return 16; }
  // Elements are selected, not summed, and sums of ranks have one order whatever the schedule is.
  static SumOrder sum_order(const Plan&, const Config&, const Target&) { return {.order = "ranks in waves of 64"}; }
  static SumOrder invariant_order(const Plan&, const Target&) { return {.order = "ranks in waves of 64"}; }
};

// Whether a row_top needs more than a wave: more than 16 ranks, or of more than 1024 columns.
bool has_wide_ranks(const Body& body);

} // namespace kiln
