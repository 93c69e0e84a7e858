// Family: a kind of kernel. What each declares, and the entry that the stages call it by.
#pragma once
#include "gen/emit/assemble.h"
#include "gen/families/common/promises.h"
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct Schedule; // gen/families/schedule.h
struct Setting;  // gen/families/common/fields.h

template <typename C> struct Candidate {
  C config;
  std::string why; // one line: what decided
};

// What the struct of a family has. Its config stands in templates/, shared with the device, with why_invalid(config); the names
// of its fields are for_each_field(config, visit), see gen/families/common/fields.h.
template <typename F>
concept FamilyDefinition = requires(const typename F::Config& config, const Plan& plan, AnalysedSpec& spec, const Target& target) {
  { F::name } -> std::convertible_to<std::string_view>; // in plans and schedules, and of the door in templates/
  // What to do when no schedule keeps its promises.
  { F::remedy } -> std::convertible_to<std::string_view>;
  // Whether the family computes such specs. The first family of the registry that takes a spec has it.
  { F::takes(spec) } -> std::same_as<bool>;
  // Sets Body::outer_dims and Body::cols. Throws UserError for what only this family could compute, but does not.
  F::lay_out(spec);
  // Best first. What does not fit the plan is dropped by the caller, who says why when nothing is left. Never empty.
  { F::candidates(plan, target) } -> std::same_as<std::vector<Candidate<typename F::Config>>>;
  // Throws UserError that says why the config cannot run the plan.
  F::require_valid(config, plan, target);
  { F::emit(plan, config, target) } -> std::same_as<KernelSource>;
  { F::promises(plan, config, target) } -> std::same_as<Promises>;
  // The most f32 additions that an element passes through in a sum; nothing when the order of a sum is not known.
  { F::addition_depth(config) } -> std::same_as<std::optional<std::int64_t>>;
};
// And two members that a family may have:
//   static void after_setting(Config&, std::string_view field, const Plan&, const Target&): sets what follows from a field
//     that was set by name; fields that others follow from come first in F::sets_others.
//   static std::vector<Candidate<Config>> fallbacks(const Config& first): what to try when the compiler breaks what the
//     candidates promise. They differ from `first` in the field F::falls_back_by, and are not tried when that is set by name.

// A family whose config's type is erased: what the stages hold and call. Made by family_entry of gen/families/entry.h.
struct Family {
  std::string_view name, remedy;
  bool (*takes)(const AnalysedSpec&);
  void (*lay_out)(AnalysedSpec&);
  std::vector<Schedule> (*candidates)(const Plan&, const Target&);
  std::vector<Schedule> (*fallbacks)(const Schedule& first, std::span<const Setting> settings);
  void (*set)(Schedule&, std::span<const Setting> settings, const Plan&, const Target&);
  void (*require_valid)(const Schedule&, const Plan&, const Target&);
  KernelSource (*emit)(const Plan&, const Schedule&, const Target&);
  Promises (*promises)(const Plan&, const Schedule&, const Target&);
  std::optional<std::int64_t> (*addition_depth)(const Schedule&);
  std::string (*fields_text)(const Schedule&);
};

// Throws the UserError of a schedule that cannot run a plan.
[[noreturn]] void reject_schedule(const Plan& plan, const std::string& fact, const std::string& remedy);

} // namespace kiln
