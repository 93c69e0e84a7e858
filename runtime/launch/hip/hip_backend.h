// HipBackend: a GPU, through the HIP runtime.
#pragma once
#include "runtime/launch/backend.h"
#include "runtime/launch/hip/hip.h"

namespace kiln {

// Throws EnvironmentError when HIP has no such device, naming how many there are.
std::shared_ptr<DeviceBackend> make_hip_backend(std::shared_ptr<const Hip> hip, int ordinal);

} // namespace kiln
