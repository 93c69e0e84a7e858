// EarlyUses: registers that are used before the operation that fills or reads them is known to be complete, on some path.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/analysis/memory_accesses.h"
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <vector>

namespace kiln::isa {

struct EarlyUse {
  std::size_t operation = 0, use = 0;       // instructions
  WaitCounter counter = WaitCounter::vmcnt; // of the wait that is missing
  bool overwrites = false;                  // the use writes the registers and does not read them
  FlowPath path;                            // from the operation to the use
};

struct EarlyUses {
  std::vector<EarlyUse> list; // by operation; of each the nearest use
  bool complete = true;       // false: the work budget ended, and nothing was found out
};

// Loads and returning atomics (vector memory, LDS, scalar, flat) whose result is read or overwritten before an s_waitcnt completes
// them. Counters count as in the executor (isa_checks/exec/machine/wait_counts.h): vector memory and LDS complete in order, scalar
// memory at lgkmcnt(0) only, flat at 0 of both. A load may overwrite the result of an earlier one that completes in order with it.
EarlyUses early_uses(const Program& program, const std::vector<Operands>& operands);

// Stores whose data is overwritten before the hardware has read it: by a vector ALU instruction within wide_store_states of a store of
// more than 8 bytes a lane (LLVM's GCNHazardRecognizer.cpp, createsVALUHazard), with no wait between that completes the store, or before
// expcnt says that ds_gws_* has read its registers.
EarlyUses early_overwrites(const Program& program, const std::vector<Operands>& operands, const MemoryAnalysis& memory,
                           const TargetFacts& target);
// Whether a buffer's access takes its offset from a scalar register.
bool has_scalar_offset(const MemoryAccess& access, const Operands& operands);

} // namespace kiln::isa
