// Schedule: how a plan runs on a target. Named numbers, no text.
#pragma once
#include "gen/plan/plan.h"
#include "templates/elementwise_config.h"
#include "templates/rowwise_config.h"
#include "templates/skinny_gemm_config.h"
#include <string>
#include <vector>

namespace kiln {

struct Schedule {
  Family family = Family::elementwise;
  RowwiseConfig rowwise = {};         // of Family::rowwise
  ElementwiseConfig elementwise = {}; // of Family::elementwise
  SkinnyGemmConfig gemm = {};         // of Family::skinny_gemm
  std::string why = {};               // one line: what decided
  int threads() const {
    return family == Family::rowwise ? rowwise.threads() : family == Family::skinny_gemm ? gemm.threads() : elementwise.threads;
  }
  bool operator==(const Schedule&) const = default;
};

std::string_view to_string(Residency residency);
std::string_view to_string(GemmMethod method);

// Valid schedules for `plan`, best first: the estimate that decides is explained in gen/families/schedule.cpp. Never empty.
std::vector<Schedule> candidates(const Plan& plan, const Target& target);
// What is tried one after another: the candidates, or with `settings` the first of them as with_overrides changes it; and last,
// for a product whose ring is not set, the first of these with shorter rings, for when the compiler needs more registers than was
// estimated. Throws what with_overrides throws. Never empty.
std::vector<Schedule> candidates(const Plan& plan, const Target& target, const std::vector<std::string>& settings);
Schedule choose_schedule(const Plan& plan, const Target& target); // the first of them

// LDS bytes of a workgroup: kept values and reductions. An upper bound, at most 4 KiB above what the kernel takes.
int lds_bytes(const Plan& plan, const Schedule& schedule);

// Throws UserError that says why a schedule cannot run a plan: the config is invalid in itself, or does not fit the plan
// (columns, group sizes, LDS of the target, an in-place output whose input would be read again).
void require_valid(const Schedule& schedule, const Plan& plan, const Target& target);

// Replaces fields by name: {"threads_per_row=512", "residency=lds"}. Throws UserError on unknown names and bad values,
// and require_valid's.
Schedule with_overrides(Schedule schedule, const std::vector<std::string>& settings, const Plan& plan, const Target& target);

std::string to_text(const Schedule& schedule); // "schedule rowwise: cols=16384 vec=8 ..."

} // namespace kiln
