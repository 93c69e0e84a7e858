// Entry: a family's definition as a Family. For the registry, and for tests that bring a family of their own.
#pragma once
#include "gen/families/common/fields.h"
#include "gen/families/schedule.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln {
namespace entry {

template <typename F> const typename F::Config& config_of(const Schedule& schedule) {
  const auto* const config = std::get_if<typename F::Config>(&schedule.config);
  if (config == nullptr) throw InternalError(fmt::format("a schedule of family {} with another family's config", F::name));
  return *config;
}

template <typename F> std::vector<Schedule> schedules(const Plan& plan, std::vector<Candidate<typename F::Config>> candidates) {
  std::vector<Schedule> result;
  for (Candidate<typename F::Config>& c : candidates)
    result.push_back({.family = plan.family, .config = std::move(c.config), .why = std::move(c.why)});
  return result;
}
template <typename F> std::vector<Schedule> candidates_on(const Plan& plan, const Target& target, int cus) {
  if constexpr (requires { F::candidates_on(plan, target, cus); }) return schedules<F>(plan, F::candidates_on(plan, target, cus));
  else return schedules<F>(plan, F::candidates(plan, target));
}

// Whether a field that was set by name has another value in `other`.
template <typename C> bool changes_any(const C& first, const C& other, std::span<const Setting> settings) {
  const auto before = field_values(first, true);
  return std::ranges::any_of(field_values(other, true), [&](const auto& now) {
    const bool is_set = std::ranges::find(settings, now.first, &Setting::field) != settings.end();
    return is_set && std::ranges::find(before, now) == before.end();
  });
}

template <typename F> std::vector<Schedule> fallbacks(const Schedule& first, std::span<const Setting> settings) {
  std::vector<Schedule> result;
  if constexpr (requires { F::fallbacks(config_of<F>(first)); }) {
    if constexpr (requires { F::fallback_field; })
      if (std::ranges::find(settings, F::fallback_field, &Setting::field) != settings.end()) return result;
    for (Candidate<typename F::Config>& c : F::fallbacks(config_of<F>(first))) {
      if (changes_any(config_of<F>(first), c.config, settings)) continue;
      result.push_back({.family = first.family, .config = std::move(c.config), .why = std::move(c.why)});
    }
  }
  return result;
}

template <typename F> void set(Schedule& schedule, std::span<const Setting> settings, const Plan& plan, const Target& target) {
  auto config = config_of<F>(schedule);
  std::vector<Setting> in_order(settings.begin(), settings.end());
  if constexpr (requires { F::leading_field; })
    std::ranges::stable_partition(in_order, [](const Setting& s) { return s.field.ends_with(F::leading_field); });
  for (const Setting& setting : in_order) {
    set_field(config, F::name, setting);
    if constexpr (requires { F::after_setting(config, setting.field, plan, target); })
      F::after_setting(config, setting.field, plan, target);
  }
  schedule.config = config;
}

template <typename F> consteval std::span<const std::string_view> words() {
  if constexpr (requires { F::words; }) return F::words;
  else return {};
}

// A config of several problems names the fields of theirs.
template <typename C> consteval bool names_every_field() {
  if constexpr (requires(C c) { c.problems; }) return true;
  else return named_fields<C>() == member_count<C>();
}

template <typename F> KernelSource emit(const Plan& plan, const Schedule& s, const Target& target) {
  if constexpr (requires { F::emit(plan, config_of<F>(s), target); }) return F::emit(plan, config_of<F>(s), target);
  else return assemble(plan, target, F::parts(plan, config_of<F>(s), target, {.block = {}, .workspace = workspace_name(plan)}));
}

template <typename F> void after_setting(Schedule& schedule, std::string_view field, const Plan& plan, const Target& target) {
  auto config = config_of<F>(schedule);
  if constexpr (requires { F::after_setting(config, field, plan, target); }) F::after_setting(config, field, plan, target);
  schedule.config = config;
}

template <typename F> consteval Family make_entry() {
  static_assert(names_every_field<typename F::Config>(), "for_each_field names every member of a config");
  Family family{
      .name = F::name,
      .remedy = F::remedy,
      .words = words<F>(),
      .can_compute = [](const AnalysedSpec& spec) { return F::can_compute(spec); },
      .lay_out = [](AnalysedSpec& spec) { F::lay_out(spec); },
      .candidates = [](const Plan& plan, const Target& target) { return candidates_on<F>(plan, target, target.compute_units()); },
      .fallbacks = fallbacks<F>,
      .set = set<F>,
      .why_not = [](const Schedule& s, const Plan& plan, const Target& target) { return F::why_not(config_of<F>(s), plan, target); },
      .demand = [](const Plan& plan, const Schedule& s, const Target& target, const RunTimeSizes& sizes) -> std::optional<Demand> {
        if constexpr (requires { F::demand(plan, config_of<F>(s), target, sizes); }) return F::demand(plan, config_of<F>(s), target, sizes);
        else return {};
      },
      .emit = emit<F>,
      .promises = [](const Plan& plan, const Schedule& s, const Target& target) { return F::promises(plan, config_of<F>(s), target); },
      .addition_depth = [](const Schedule& s) { return F::addition_depth(config_of<F>(s)); },
      .sum_order = [](const Plan& plan, const Schedule& s, const Target& target) -> SumOrder {
        if constexpr (requires { F::sum_order(plan, config_of<F>(s), target); }) return F::sum_order(plan, config_of<F>(s), target);
        else return {};
      },
      .invariant_order = [](const Plan& plan, const Target& target) -> SumOrder {
        if constexpr (requires { F::invariant_order(plan, target); }) return F::invariant_order(plan, target);
        else return {};
      },
      .fields_text = [](const Schedule& s) { return fields_text(config_of<F>(s)); },
      .settings = [](const Schedule& s) { return settings_of(config_of<F>(s)); },
  };
  if constexpr (requires { F::other_methods; }) {
    family.method = [](const Schedule& s) { return F::method(config_of<F>(s)); };
    family.other_methods = [](const Schedule& s, const Target& target, const Allowed& allowed) {
      std::vector<Schedule> result;
      for (typename F::Config& c : F::other_methods(config_of<F>(s), target, allowed))
        result.push_back({.family = s.family, .config = std::move(c), .why = "another method for the tuner"});
      return result;
    };
  }
  if constexpr (requires { F::with_threads; }) {
    family.parts = [](const Plan& plan, const Schedule& s, const Target& target, const ProblemPlace& place) {
      return F::parts(plan, config_of<F>(s), target, place);
    };
    family.threads = [](const Schedule& s) { return F::threads(config_of<F>(s)); };
    family.with_threads = [](const Schedule& s, int threads, const Plan& plan, const Target& target) {
      return Schedule{.family = s.family, .config = F::with_threads(config_of<F>(s), threads, plan, target), .why = s.why};
    };
    family.candidates_on = candidates_on<F>;
    family.after_setting = after_setting<F>;
  }
  return family;
}

} // namespace entry

template <typename F> inline constexpr Family family_entry = entry::make_entry<F>();

} // namespace kiln
