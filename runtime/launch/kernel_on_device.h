// KernelOnDevice: what all copies of a LoadedKernel share.
#pragma once
#include "runtime/launch/arguments/tensor_rule.h"
#include "runtime/launch/backend.h"
#include "runtime/launch/markers.h"
#include "runtime/launch/workspace_pool.h"
#include <memory>
#include <vector>

namespace kiln {

struct KernelOnDevice {
  // Checks the layout, then loads. Throws UserError when the kernel is for another architecture, what check_layout and the
  // backend throw.
  KernelOnDevice(std::shared_ptr<DeviceBackend> backend, Kernel kernel, const Markers& markers);

  std::shared_ptr<DeviceBackend> backend;
  Kernel kernel;
  std::vector<TensorRule> tensors; // in the order of the arguments
  std::unique_ptr<LoadedCode> code;
  WorkspacePool workspaces; // goes before the code: it waits for launches
};

} // namespace kiln
