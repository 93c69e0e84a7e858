// try_schedule: one schedule of a plan compiled, judged by its ISA contract, and its time predicted.
#pragma once
#include "gen/families/schedule.h"
#include "isa_checks/analysis/facts.h"
#include "isa_checks/timing/predict.h"
#include "isa_checks/verdict/expectations.h"
#include "runtime/build/build_kernel.h"
#include "runtime/compile/compile.h"
#include <span>
#include <string>
#include <vector>

namespace kiln {

// Schedules of a kernel that build_quickest compiles and simulates at most. docs/timing_model.md says how far the quickest of them is from
// the best candidate.
inline constexpr int simulated_first = 3;

struct TriedSchedule {
  Schedule schedule;
  KernelSource source;
  CodeObject object;
  isa::KernelFacts facts;
  isa::IsaReport report;                       // of the ISA contract
  std::vector<timing::Prediction> predictions; // one for each of the sizes; empty when the contract is broken, or the launch too long
  std::string too_long;                        // why it is not simulated though the contract holds
  double microseconds() const;                 // their geometric mean; 0 without
};

// The plan's spec at each of `sizes`, which have every run-time size of it. Throws UserError, EnvironmentError and isa::Error as the
// stages do.
TriedSchedule try_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const timing::Chip& chip,
                           const timing::PredictOptions& predict, std::span<const RunTimeSizes> sizes, const CompileOptions& options);

// Whether build_quickest tries another schedule of a plan beside those that keep their contract, of which there is one at least, the cost
// model's first in front: one that is not far behind by the model, less where HBM bounds the launch, for there the model is seldom
// wrong, and elsewhere the first of another method. None of large launches, and none where only the launch says how many rows an
// expert has or how large a dimension is.
bool is_worth_simulating(const Plan& plan, const Target& target, std::span<const Schedule> kept, const Schedule& other);

} // namespace kiln
