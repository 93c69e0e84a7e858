// UninitialisedReads: registers that are read although nothing has written them.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/object/code_object.h"
#include <vector>

namespace kiln::isa {

struct UninitialisedRead {
  std::size_t instruction = 0;
  RegisterRange registers;   // the operand
  bool on_all_paths = false; // no path from the entry writes it
  FlowPath path;             // from the entry
};

// What is defined at the entry is what the kernel descriptor asks for: v0, the user SGPRs, the workgroup ids. Copies and selections
// hand undefinedness on and are no reads themselves, nor are the parts of a register that an instruction keeps. A branch around
// what lanes that are off would do (s_cbranch_execz) defines what it skips: those lanes do not read it either. "Some path" takes no branch
// backward, because what a first repetition leaves out a later one rarely misses. One read of each register is reported. Nothing is said of
// code with calls or indirect branches.
std::vector<UninitialisedRead> uninitialised_reads(const Program& program, const std::vector<Operands>& operands,
                                                   const std::vector<RegisterUse>& uses, const KernelDescriptor& descriptor);

} // namespace kiln::isa
