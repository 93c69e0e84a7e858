// Attention: softmax of scores of few queries a sequence, times the values of its cache, and a pointwise epilogue.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "gen/plan/attention_parts.h"
#include "templates/attention_config.h"

namespace kiln {

template <MaybeConst<AttentionConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{.name = "heads", .settable = false}, c.heads);
  visit(Field{.name = "kv_heads", .settable = false}, c.kv_heads);
  visit(Field{.name = "tokens", .settable = false, .shown = c.tokens != 1}, c.tokens);
  visit(Field{.name = "d", .settable = false}, c.d);
  visit(Field{.name = "value_d", .settable = false, .shown = c.value_d != 0}, c.value_d);
  visit(Field{.name = "q_bits", .settable = false}, c.q_bits);
  visit(Field{.name = "cache_bits", .settable = false}, c.cache_bits);
  visit(Field{.name = "k_scale", .settable = false, .shown = c.k_scale != 0}, c.k_scale);
  visit(Field{.name = "v_scale", .settable = false, .shown = c.v_scale != 0}, c.v_scale);
  visit(Field{.name = "page", .settable = false, .shown = c.page != 0}, c.page);
  visit(Field{"workgroups"}, c.workgroups);
  visit(Field{"per_cu"}, c.per_cu);
  visit(Field{"tiles"}, c.tiles);
  visit(Field{.name = "vec", .settable = false}, c.vec);
  visit(Field{.name = "parts", .settable = false, .shown = c.parts != 0}, c.parts);
}

struct Attention {
  using Config = AttentionConfig;
  static constexpr std::string_view name = "attention";
  static constexpr std::string_view remedy = "use fewer tokens or heads of a group at a time, or split the epilogue off";
  static constexpr std::string_view words[] = {"Attention", "AttentionConfig", "CacheScales",    "KeyScale", "ScoreRow",
                                               "OfThisRow", "scored",          "first_key_from", "later_key"};

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static constexpr std::string_view fallback_field = "per_cu";
  static std::vector<Candidate<Config>> fallbacks(const Config& first);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
  static SumOrder sum_order(const Plan& plan, const Config& config, const Target& target);
  static SumOrder invariant_order(const Plan& plan, const Target& target);
};

// The most parts of a head's keys, of batch-invariant attention on a target.
int invariant_parts(const AttentionConfig& planned, const Target& target);

// Throws UserError when a condition of the score expression never holds, so that no key has a weight.
void require_some_weight(const AttentionParts& attention);

// Device text for the first key of a sequence that may have a weight, from the variable `length` with its length: what comparisons of the
// key's position in the score expression say. "0u" when they say nothing.
std::string first_key_text(const AttentionParts& attention, const std::string& length);

} // namespace kiln
