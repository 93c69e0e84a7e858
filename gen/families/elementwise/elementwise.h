// Elementwise: one flat run of elements. Every tensor has the full shape and is contiguous, or is one value for all.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include "templates/elementwise_config.h"

namespace kiln {

template <MaybeConst<ElementwiseConfig> C, typename Visit> constexpr void for_each_field(C& c, const Visit& visit) {
  visit(Field{"vec"}, c.vec);
  visit(Field{"threads"}, c.threads);
  visit(Field{"chunks"}, c.chunks);
  visit(Field{"prefetch_depth"}, c.prefetch_depth);
  visit(Field{.name = "waves_per_eu", .shown = c.waves_per_eu != 0}, c.waves_per_eu);
  visit(Field{.name = "exact", .settable = false}, c.exact);
}

// A factor of the number of elements, whatever the run-time sizes.
std::int64_t known_factor(const Body& body);

struct Elementwise {
  using Config = ElementwiseConfig;
  static constexpr std::string_view name = "elementwise";
  static constexpr std::string_view remedy = "split the kernel, or lower vec with --set vec=...";
  static constexpr std::string_view words[] = {"ElementwiseConfig"};

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static constexpr std::string_view fallback_field = "vec";
  static std::vector<Candidate<Config>> fallbacks(const Config& first);
  static void after_setting(Config& config, std::string_view field, const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelParts parts(const Plan& plan, const Config& config, const Target& target, const ProblemPlace& place);
  static int threads(const Config& config) { return config.threads; }
  static Config with_threads(Config config, int threads, const Plan& plan, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
};

} // namespace kiln
