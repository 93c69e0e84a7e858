// build_kernel: the whole way from a spec to a code object and its facts, with the time of every stage.
#pragma once
#include "gen/plan.h"
#include "gen/schedule.h"
#include "isa_checks/facts.h"
#include "runtime/compile.h"
#include <string>
#include <vector>

namespace kiln {

// Wall milliseconds. What Kiln itself costs is everything but `compile`.
struct BuildTimes {
  double plan = 0, schedule = 0, emit = 0, compile = 0, check = 0;
  double own() const { return plan + schedule + emit + check; }
};

struct BuiltKernel {
  Plan plan;
  Schedule schedule;
  KernelSource source;
  CodeObject object;
  isa::KernelFacts facts;
  BuildTimes times;
};

// `overrides`: "name=value" fields of the schedule, as in `kiln compile --set`. Throws what the stages throw.
BuiltKernel build_kernel(const KernelSpec& spec, const Target& target, const CompileOptions& options = {},
                         const std::vector<std::string>& overrides = {});

} // namespace kiln
