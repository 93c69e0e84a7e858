// check_layout: whether a kernel's description, which may come from anybody's cache, is one that launches can follow.
#pragma once
#include "gen/spec/spec.h"
#include "runtime/launch/kernel.h"

namespace kiln {

// Three things are compared: what the spec has, what Kiln would fill and launch, and what the code object declares.
// * Every argument is one of the spec, once, with the size of its kind (addresses 8 bytes, numbers 4), aligned, after the one before
//   it, within the kernarg segment, and with the code object's offset, size and kind.
// * The workgroup is within the limits of the target and of the code object; the grid is of sizes that the spec has.
// Whatever passes can be bound without an access outside of the argument block and without an overflow.
// Returns the spec. Throws EnvironmentError that names what differs: such a kernel must not be launched.
KernelSpec check_layout(const Kernel& kernel);

} // namespace kiln
