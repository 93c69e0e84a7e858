// inspect: what the compiler made of a kernel, read from its code object.
#pragma once
#include "isa_checks/analysis/facts.h"
#include "isa_checks/verdict/expectations.h"
#include "isa_checks/verdict/finding.h"
#include "runtime/compile/compile.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

// Registers, LDS, occupancy and instruction counts of the kernel that `object` is named after.
// Throws InternalError when the code object has no such kernel, isa::Error when it cannot be read.
isa::KernelFacts inspect(const CodeObject& object);

// The same, and the verdict on what the kernel promises.
struct Inspection {
  isa::KernelFacts facts;
  isa::IsaReport report;
};
Inspection inspect(const CodeObject& object, const isa::Expectations& promised);

// What the rules of isa_lint that are on find in it, without lines of its source.
std::vector<isa::Finding> findings_of(const CodeObject& object);

isa::Program program_of(const CodeObject& object);

// The kernel's instructions, one a line, with addresses and with labels where branches go.
std::string assembly(const CodeObject& object);

} // namespace kiln
