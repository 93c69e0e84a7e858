// UninitialisedReads: registers that are read although nothing has written them.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include "isa_checks/object/code_object.h"
#include <optional>
#include <utility>
#include <vector>

namespace kiln::isa {

struct UninitialisedRead {
  std::size_t instruction = 0; // the first that reads the register
  std::size_t effect = 0;      // the one by which it matters: a branch, a memory access, a write of EXEC; may be the same
  RegisterRange registers;     // the operand
  // The vector register and lane, when it is a lane that v_writelane alone writes.
  std::optional<std::pair<std::uint16_t, int>> lane;
  // The lane that keeps it, or what comes of it, on the way to the effect: an undefined value that was spilled and reloaded.
  std::optional<std::pair<std::uint16_t, int>> spilled;
  bool on_all_paths = false; // no path from the entry writes it
  FlowPath path;             // from the entry to the effect; empty when the work budget ended
};

// What is defined at the entry is what the kernel descriptor asks for: v0, the user SGPRs, the workgroup ids; and M0 and SCC, which
// are not looked at. Whatever is computed from an undefined value is as undefined, element by element in matrix and packed
// instructions. A read counts when what comes of it decides a branch or which lanes are on, or becomes an address or the data of a
// store; wide stores to LDS may be undefined in parts (padding), and stores to scratch at all: reading back is not followed. A lane mask
// of which EXEC clears the bits that are on (s_andn2) is defined: its other bits are ANDed with EXEC before they are used. The parts of a
// register that an instruction keeps are no reads. A branch around what lanes that are off would do (s_cbranch_execz) defines what it
// skips: those lanes do not read it either. "Some path" takes no branch backward, because what a first repetition leaves out a later one
// rarely misses. One read of each register is reported. Nothing is said of code with calls or indirect branches.
std::vector<UninitialisedRead> uninitialised_reads(const Program& program, const std::vector<Operands>& operands,
                                                   const KernelDescriptor& descriptor);

} // namespace kiln::isa
