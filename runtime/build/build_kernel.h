// build_kernel: the whole way from a spec to a code object that keeps its ISA contract, with the time of every stage.
#pragma once
#include "gen/error.h"
#include "gen/families/schedule.h"
#include "isa_checks/analysis/facts.h"
#include "isa_checks/verdict/expectations.h"
#include "runtime/compile/compile.h"
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// Wall milliseconds, over all schedules that were tried.
struct BuildTimes {
  double plan = 0, schedule = 0, emit = 0, compile = 0, check = 0;
  double library = 0; // the part of `compile` that the compiler library takes; all else is what Kiln itself costs
  double own() const { return plan + schedule + emit + (compile - library) + check; }
};

// A schedule whose code broke the contract.
struct RejectedSchedule {
  Schedule schedule;
  isa::IsaReport report;
};

struct BuiltKernel {
  Plan plan;
  Schedule schedule;
  KernelSource source;
  CodeObject object;
  isa::KernelFacts facts;
  isa::IsaReport report;                  // of the contract, all met
  std::vector<RejectedSchedule> rejected; // tried before
  BuildTimes times;
};

// No schedule gave code that keeps the contract. what() names the first broken expectation of each.
struct RejectedError : Error {
  RejectedError(const std::string& kernel, const std::string& arch, std::vector<RejectedSchedule> tried);
  explicit RejectedError(const std::string& what) : Error(what) {} // of a worker process: its words alone
  std::vector<RejectedSchedule> rejected;
};

// A schedule compiled; nothing, and an entry more of `rejected`, if its code breaks what it promises. Adds its times.
std::optional<BuiltKernel> build_schedule(const Plan& plan, const Schedule& schedule, const Target& target, const CompileOptions& options,
                                          std::vector<RejectedSchedule>& rejected, BuildTimes& times);

// Compiles the schedules that candidates() offers, best first, until one keeps what the schedule promises.
// `overrides`: "name=value" fields of the schedule, as in `kiln compile --set`: then only the schedules with these are tried.
// Throws what the stages throw, and RejectedError.
BuiltKernel build_kernel(const KernelSpec& spec, const Target& target, const CompileOptions& options = {},
                         const std::vector<std::string>& overrides = {});

// As build_kernel without settings, but of the first `simulated` of those that keep their contract the one that the simulation has
// quickest, cold, on the target's own chip. Defined in runtime/tune/try_schedule.cpp, which simulates.
BuiltKernel build_quickest(const KernelSpec& spec, const Target& target, const CompileOptions& options, int simulated);

} // namespace kiln
