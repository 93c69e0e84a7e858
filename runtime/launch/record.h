// record_kernel: a record of a compiled kernel at given sizes, for predictions. Needs no GPU and no data.
#pragma once
#include "gen/emit/kernel_source.h"
#include "gen/spec/spec.h"
#include "isa_checks/exec/machine/memory.h"
#include "isa_checks/timing/record.h"
#include "runtime/compile/compile.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

// A launch whose buffers hold zeros, but for what decides which rows and how many a kernel reads, and what is ranked. Throws UserError for
// a launch of no workgroups.
struct BlankLaunch {
  exec::Grid grid;
  exec::Memory memory;
  std::vector<std::byte> arguments;
};
BlankLaunch blank_launch(const KernelSpec& spec, const KernelSource& source, const std::map<std::string, std::int64_t>& sizes);

// `source` and `object` were made from `spec`; `sizes` has every run-time size of it. Throws UserError for a launch of no workgroups,
// isa::Error when the kernel does not end well.
timing::Record record_kernel(const KernelSpec& spec, const KernelSource& source, const CodeObject& object,
                             const std::map<std::string, std::int64_t>& sizes, const timing::RecordOptions& options = {});

} // namespace kiln
