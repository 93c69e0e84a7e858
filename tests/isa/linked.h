// link: what a linker does to a test's relocatable object, so far as loading it cares.
#pragma once
#include "isa_checks/object/elf_image.h"

namespace kiln::isa::testing {

// Gives each allocated section an address of its own, moves the symbols there, writes the entry offsets into the kernel
// descriptors and makes the file a shared object.
Bytes link(Bytes object);

} // namespace kiln::isa::testing
