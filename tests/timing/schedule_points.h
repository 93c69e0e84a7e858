// Points of shapes and types at which schedules are compared: a seed gives the same one on every machine.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include <cstdint>
#include <string>

namespace kiln::testing {

struct SchedulePoint {
  std::string title; // "gemm m=8 n=2304 k=16384 e4m3fnuz gfx942"
  KernelSpec spec;
  Target to;
};
SchedulePoint schedule_point(std::uint64_t seed);

} // namespace kiln::testing
