// Fused launch: several problems of unlike shapes in one launch. Each has workgroups of its own, as the family has them that computes it.
#pragma once
#include "gen/families/common/family.h"
#include "gen/families/common/fields.h"
#include <variant>

namespace kiln {

struct ProblemSchedule; // gen/families/schedule.h

struct FusedLaunchConfig {
  std::vector<ProblemSchedule> problems;
  int threads() const; // of a workgroup: those of the problem that uses most
  bool operator==(const FusedLaunchConfig&) const;
};

// The fields of every problem, with its name before them: "y.vec".
template <MaybeConst<FusedLaunchConfig> C, typename Visit> void for_each_field(C& c, const Visit& visit) {
  for (auto& problem : c.problems)
    std::visit(
        [&]<typename P>(P& config) {
          if constexpr (!std::same_as<std::remove_const_t<P>, FusedLaunchConfig>) // a problem has no problems
            for_each_field(config, [&](Field field, auto& member) {
              const std::string name = problem.name + "." + std::string(field.label());
              field.name = name;
              field.prefix = {};
              visit(field, member);
            });
        },
        problem.schedule.config);
}

struct FusedLaunch {
  using Config = FusedLaunchConfig;
  static constexpr std::string_view name = "fused_launch";
  static constexpr std::string_view remedy = "compute its outputs in several kernels";
  static constexpr std::string_view words[] = {"is_surplus", "Handover"};
  static constexpr std::string_view leading_field = ".method"; // of any product

  static bool can_compute(const AnalysedSpec& spec);
  static void lay_out(AnalysedSpec& spec);
  static std::vector<Candidate<Config>> candidates(const Plan& plan, const Target& target);
  static std::vector<Candidate<Config>> fallbacks(const Config& first); // those of its rows, of its products, of both
  static void after_setting(Config& config, std::string_view field, const Plan& plan, const Target& target);
  static std::optional<Refusal> why_not(const Config& config, const Plan& plan, const Target& target);
  static Demand demand(const Plan& plan, const Config& config, const Target& target, const RunTimeSizes& sizes);
  static KernelSource emit(const Plan& plan, const Config& config, const Target& target);
  static Promises promises(const Plan& plan, const Config& config, const Target& target);
  static std::optional<std::int64_t> addition_depth(const Config& config);
  static SumOrder sum_order(const Plan& plan, const Config& config, const Target& target);
  static SumOrder invariant_order(const Plan& plan, const Target& target);
};

} // namespace kiln
