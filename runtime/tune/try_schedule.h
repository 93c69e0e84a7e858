// try_schedule: one schedule of a plan compiled, judged by its ISA contract, and its time predicted.
#pragma once
#include "gen/families/schedule.h"
#include "isa_checks/analysis/facts.h"
#include "isa_checks/timing/predict.h"
#include "isa_checks/verdict/expectations.h"
#include "runtime/compile/compile.h"
#include <span>
#include <vector>

namespace kiln {

struct TriedSchedule {
  Schedule schedule;
  KernelSource source;
  CodeObject object;
  isa::KernelFacts facts;
  isa::IsaReport report;                       // of the ISA contract
  std::vector<timing::Prediction> predictions; // one for each of the sizes; empty when the contract is broken
  double microseconds() const;                 // their geometric mean; 0 without
};

// The plan's spec at each of `sizes`, which have every run-time size of it. Throws UserError, EnvironmentError and isa::Error as the
// stages do.
TriedSchedule try_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const timing::Chip& chip,
                           const timing::PredictOptions& predict, std::span<const RunTimeSizes> sizes, const CompileOptions& options);

} // namespace kiln
