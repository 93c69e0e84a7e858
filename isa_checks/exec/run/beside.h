// execute_beside: several launches beside each other on a few CUs of a device, their workgroups begun and advanced in a random order.
#pragma once
#include "isa_checks/exec/run/execute.h"

namespace kiln::exec {

struct LaunchBeside {
  const isa::CodeObject& object;
  std::string_view kernel;
  Grid grid;
  std::span<const std::byte> arguments; // as execute takes them
};

// Workgroups of a launch begin in their order, those of several launches in any order, as soon as a CU has room: a workgroup takes
// 1 / occupancy of one. Whichever has begun goes on at any time; options.seed decides. The result is of all launches together, without
// profiles of instructions; a deadlock is that all which are begun wait, and none that is left has room. One host thread;
// options.threads, in_turns and measure mean nothing here. Throws as execute does.
ExecResult execute_beside(std::span<const LaunchBeside> launches, int cus, Memory& memory, const ExecOptions& options = {});

} // namespace kiln::exec
