// Family: a kind of kernel.
#pragma once
#include "gen/emit/assemble.h"
#include "gen/error.h"
#include "gen/families/common/cost.h"
#include "gen/families/common/promises.h"
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

// In which order, and by which instructions, the sums of a row (an element of a product, a sequence) are taken. Schedules of a plan whose
// orders are the same text, and depend on nothing, give a row the same bits. Empty: nothing is summed.
struct SumOrder {
  std::string order = {};
  std::string depends_on = {}; // why a row's order depends on what else is in the batch
  bool operator==(const SumOrder&) const = default;
};

// What a tuner may choose although results are others than those of candidates: the family says which.
struct Allowed {
  bool atomics = false; // sums are added in the order of their arrival: bits vary from run to run
  bool sparse = false;  // infinite weights may make NaN of results that are infinite
};

// What the stages hold and call. family_entry<F> of gen/families/entry.h makes it from F, the struct of a family, which has these as
// static members: with its `Config` in the place of Schedule, and Candidate<Config> for what it offers. Config stands in templates/,
// shared with the device, with why_invalid(config); gen/families/common/fields.h says how its fields get their names.
struct Family {
  std::string_view name;   // in plans and schedules, and of the header in templates/
  std::string_view remedy; // what to do when no schedule keeps its promises
  // Words of its kernels' text beside those of all kernels: no input, output or kernel is called so. In F optional.
  std::span<const std::string_view> words;
  // Whether the family computes such specs. The first family of the registry that takes a spec has it.
  bool (*can_compute)(const AnalysedSpec&);
  // Sets Body::outer_dims and Body::cols. Throws UserError for what only this family could compute, but does not.
  void (*lay_out)(AnalysedSpec&);
  // In any order: the caller puts the least cost first. What does not fit the plan is dropped by the caller, who says why when
  // nothing is left. Never empty.
  std::vector<Schedule> (*candidates)(const Plan&, const Target&);
  // What to try when the compiler breaks what the candidates promise. In F optional, with the first config as its only parameter.
  // None is tried when the field F::fallback_field, in F optional, is set by name, and none that changes a field that is.
  std::vector<Schedule> (*fallbacks)(const Schedule& first, std::span<const Setting> settings);
  // For a tuner, in F optional, both: what a config multiplies by, each of which is tried; and configs with every other one.
  std::string_view (*method)(const Schedule&) = nullptr;
  std::vector<Schedule> (*other_methods)(const Schedule&, const Target&, const Allowed&) = nullptr;
  // Sets fields by name. F may have after_setting(Config&, std::string_view field, const Plan&, const Target&), which sets what follows
  // from a field; the one that others follow from comes first if it ends with F::leading_field.
  void (*set)(Schedule&, std::span<const Setting> settings, const Plan&, const Target&);
  // Why the config cannot run the plan; nothing when it can.
  std::optional<Refusal> (*why_not)(const Schedule&, const Plan&, const Target&);
  // What a launch demands of a chip. In F optional: one candidate needs no order.
  std::optional<Demand> (*demand)(const Plan&, const Schedule&, const Target&, const RunTimeSizes& sizes);
  // In F either this, or what it puts together: parts(const Plan&, const Config&, const Target&, const ProblemPlace&).
  KernelSource (*emit)(const Plan&, const Schedule&, const Target&);
  Promises (*promises)(const Plan&, const Schedule&, const Target&);
  // The most f32 additions that an element passes through in a sum; nothing when the order of a sum is not known.
  std::optional<std::int64_t> (*addition_depth)(const Schedule&);
  // The order of a schedule; and the one that batch-invariant schedules of the plan have, whatever the bound of its rows is: there
  // `depends_on` says why none has. In F optional, both: without, its kernels sum nothing.
  SumOrder (*sum_order)(const Plan&, const Schedule&, const Target&);
  SumOrder (*invariant_order)(const Plan&, const Target&);
  // For all fields that are shown, and those of them that can be set, "vec=8" each; not those of F.
  std::string (*fields_text)(const Schedule&);
  std::vector<std::string> (*settings)(const Schedule&);
  // For families whose problems a fused launch may have, else null: what emit puts together; threads of a workgroup; the same schedule
  // in workgroups of so many, as near as it comes; candidates on so many CUs; and after_setting, if F has it.
  KernelParts (*parts)(const Plan&, const Schedule&, const Target&, const ProblemPlace&) = nullptr;
  int (*threads)(const Schedule&) = nullptr;
  Schedule (*with_threads)(const Schedule&, int threads, const Plan&, const Target&) = nullptr;
  std::vector<Schedule> (*candidates_on)(const Plan&, const Target&, int cus) = nullptr;
  void (*after_setting)(Schedule&, std::string_view field, const Plan&, const Target&) = nullptr;
};

// The refusal of a schedule that cannot run a plan.
Refusal refuse_schedule(const Plan& plan, std::string fact, std::string remedy);

} // namespace kiln
