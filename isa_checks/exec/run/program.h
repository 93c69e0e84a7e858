// ExecProgram: the pre-decoded instructions of a kernel.
#pragma once
#include "isa_checks/exec/machine/inst.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/target/hazards.h"
#include <unordered_map>
#include <vector>

namespace kiln::exec {

struct ExecProgram {
  std::vector<Inst> instructions;
  std::uint64_t first_address = 0;
  std::vector<std::uint32_t> index_of_word; // by (address - first_address) / 4; ~0: not the start of an instruction
  std::vector<isa::HazardTraits> hazards;   // by instruction
  const isa::TargetFacts* target = nullptr;

  // ~0 when no instruction starts at the address.
  std::uint32_t index_of(std::uint64_t address) const;
};

// Decodes the kernel's code. An instruction that is not modelled gets a handler that stops the run with its name.
ExecProgram predecode(const isa::CodeObject& object, const isa::Kernel& kernel);

// Whether some load goes from memory to LDS directly.
bool has_direct_loads(const ExecProgram& program);

} // namespace kiln::exec
