// KernelOnDevice: checked, then loaded.
#include "runtime/launch/kernel_on_device.h"
#include "gen/error.h"
#include "runtime/launch/arguments/layout.h"
#include <fmt/format.h>

namespace kiln {

KernelOnDevice::KernelOnDevice(std::shared_ptr<DeviceBackend> backend_, Kernel kernel_, const Markers& markers)
    : backend(std::move(backend_)), kernel(std::move(kernel_)),
      workspaces(backend, kernel.name() + " workspace", static_cast<std::size_t>(kernel.workspace_bytes())) {
  if (kernel.arch() != backend->arch())
    throw UserError("kernel " + kernel.name(),
                    fmt::format("it was compiled for {}, the device is {}", kernel.arch(), backend->description()),
                    fmt::format("compile it with a Jit for {}", backend->arch()));
  tensors = tensor_rules(kernel, check_layout(kernel));
  const Markers::Range range = markers.range("load", kernel.name());
  code = marked(backend->load(kernel), markers, kernel.name());
}

} // namespace kiln
