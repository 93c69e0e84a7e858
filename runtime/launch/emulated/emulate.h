// emulate: a compiled kernel on host tensors, executed instruction by instruction on the CPU. Needs no GPU.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/families/schedule.h"
#include "gen/reference/evaluate_bounds.h"
#include "isa_checks/exec/run/execute.h"
#include "runtime/compile/compile.h"

namespace kiln {

struct EmulatedRun {
  Outputs outputs;                  // as evaluate gives them; contiguous
  exec::ExecResult result;          // of the last launch: findings and counts; findings are data, look at them
  std::vector<std::byte> workspace; // as the last launch left it; empty without
};

// `source` and `object` were made from `spec`. Strided tensors get a stride of their own choice, a multiple of what the
// kernel asks for and longer than a row; the padding of inputs holds NaN bits. Nothing runs when a size is zero.
// The kernel is launched `launches` times on the same memory, until a launch has findings. Matrices that are preshuffled are
// shuffled here: inputs have their elements row by row.
// Throws UserError when the inputs do not fit the spec, as evaluate does.
EmulatedRun emulate(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Inputs& inputs,
                    const exec::ExecOptions& options = {}, int launches = 1);

// One launch on a device with room for one workgroup, which take their turns in this order: x of each that there is.
EmulatedRun emulate_one_by_one(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, const Inputs& inputs,
                               std::span<const std::uint32_t> order, const exec::ExecOptions& options = {});

// The kernel launched once for each of `inputs`, with tensors and a workspace of its own, all of them beside each other on so many CUs.
// As several streams, processes or branches of a graph have it: see execute_beside.
struct EmulatedBeside {
  std::vector<Outputs> outputs; // of each launch
  exec::ExecResult result;
};
EmulatedBeside emulate_beside(const KernelSpec& spec, const KernelSource& source, const CodeObject& object, std::span<const Inputs> inputs,
                              int cus, const exec::ExecOptions& options = {});

// How a kernel of this schedule adds up its sums, for evaluate_bounds.
BoundsOptions bounds_options(const Schedule& schedule);

} // namespace kiln
