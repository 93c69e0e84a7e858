// KernelInterface: what another program needs to launch a code object: its symbol, argument block, grid and workspace.
#pragma once
#include "gen/emit/kernel_source.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

class Kernel;

struct KernelInterface {
  std::string name; // the symbol that hipModuleGetFunction takes
  std::string arch;
  std::vector<KernelArgument> arguments; // in the order of kernelParams
  Launch launch;
  std::int64_t workspace_bytes = 0; // as KernelSource has it
  bool operator==(const KernelInterface&) const = default;
};
KernelInterface interface_of(const KernelSource& source);
KernelInterface interface_of(const Kernel& kernel);

// One JSON object:
//   {"kernel": "norm", "arch": "gfx942",
//    "arguments": [{"name": "x", "kind": "input", "dtype": "f16", "offset": 0, "size": 8, "alignment": 16}, ...],
//    "argument_bytes": 36,
//    "grid": {"threads": 256, "units": [1, "rows"], "units_per_workgroup": 4, "workgroups_per_unit": 1, "dynamic_lds_bytes": 0},
//    "workspace": {"bytes": 0, "alignment": 256, "zeroed": "before the first launch"}}
// `tensor` stands in arguments of kind in_place (the output that shares its memory) and stride. Workgroups, all in x, are
// ceil(product of units / units_per_workgroup) * workgroups_per_unit. A grid of several problems has a list `behind` with units,
// units_per_workgroup and workgroups_per_unit of the others, whose workgroups are added. Nothing is launched when there are none.
std::string to_json(const KernelInterface& interface);

} // namespace kiln
