// check_layout: the argument block as the code object declares it against the one that Kiln fills.
#pragma once
#include "runtime/launch/kernel.h"

namespace kiln {

// Reads the code object's metadata and compares: architecture, every explicit argument's offset, size and kind, and the workgroup
// size. Throws EnvironmentError that names what differs: such a kernel must not be launched.
void check_layout(const Kernel& kernel);

} // namespace kiln
