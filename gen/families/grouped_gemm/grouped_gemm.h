// GroupedGemm: tokens times the matrices of their experts, and a pointwise epilogue.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "templates/grouped_gemm_config.h"

namespace kiln {

template <MaybeConst<GroupedGemmConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "experts", .settable = false}, c.experts);
  visit(Field{.name = "top", .settable = false}, c.top);
  visit(Field{.name = "tokens", .settable = false}, c.tokens);
  visit(Field{.name = "n", .settable = false}, c.n);
  visit(Field{.name = "k", .settable = false}, c.k);
  visit(Field{.name = "expert_n", .settable = false}, c.expert_n);
  visit(Field{.name = "a_bits", .settable = false}, c.a_bits);
  visit(Field{.name = "b_bits", .settable = false}, c.b_bits);
  visit(Field{.name = "group", .settable = false, .shown = c.group != 0}, c.group);
  visit(Field{.name = "mx", .settable = false, .shown = c.mx}, c.mx);
  visit(Field{.name = "zero_bytes", .settable = false, .shown = c.zero_bytes != 0}, c.zero_bytes);
  visit(Field{.name = "of_pairs", .settable = false}, c.of_pairs);
  visit(Field{.name = "sums", .settable = false}, c.sums);
  visit(Field{.name = "products", .settable = false}, c.products);
  visit(Field{.name = "rows", .begins_line = true}, c.rows);
  visit(Field{"tile_n"}, c.tile_n);
  visit(Field{"waves"}, c.waves);
  visit(Field{"loads"}, c.loads);
  visit(Field{"ring"}, c.ring);
  visit(Field{"workgroups"}, c.workgroups);
  visit(Field{"vec"}, c.vec);
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
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
};

} // namespace kiln
