// GroupedGemm: tokens times the matrices of their experts, and a pointwise epilogue.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "gen/families/skinny_gemm/skinny_gemm.h"
#include "templates/grouped_gemm_config.h"

namespace kiln {

template <MaybeConst<GroupedGemmConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "experts", .settable = false}, c.experts);
  visit(Field{.name = "top", .settable = false}, c.top);
  visit(Field{.name = "tokens", .settable = false}, c.tokens);
  visit(Field{.name = "expert_n", .settable = false}, c.expert_n);
  visit(Field{.name = "of_pairs", .settable = false}, c.of_pairs);
  visit(Field{.name = "sums", .settable = false}, c.sums);
  visit_nested("tile", c.tile, visit, [](Field& f) {
    // Blocks have as many rows as a schedule says; methods and what goes with them are those of dense products.
    f.begins_line = f.name == "rows";
    if (f.name == "rows") f.settable = true;
    if (f.name == "method" || f.name == "waves_per_eu" || f.name == "atomics" || f.name == "staged" || f.name == "b_producers" ||
        f.name == "a_producers" || f.name == "slots" || f.name == "direct")
      f.settable = f.shown = false;
  });
}

struct GroupedGemm {
  using Config = GroupedGemmConfig;
  static constexpr std::string_view name = "grouped_gemm";
  static constexpr std::string_view remedy = "split the epilogue off, or try a narrower tile: --set tile_n=16";
  static constexpr std::string_view words[] = {"GroupedGemm", "GroupedGemmConfig"};
  static constexpr std::string_view falls_back_by = "ring";

  static bool takes(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::vector<Candidate<Config>> fallbacks(const Config& first);
  static void require_valid(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
};

} // namespace kiln
