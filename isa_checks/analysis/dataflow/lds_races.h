// LdsRaces: LDS that one wave writes and another reads with no wait and barrier between, where the addresses prove it.
#pragma once
#include "isa_checks/analysis/dataflow/flow_search.h"
#include "isa_checks/analysis/lanes/lane_addresses.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/program.h"
#include <cstdint>
#include <vector>

namespace kiln::isa {

struct LdsRace {
  std::size_t write = 0, read = 0; // instructions
  std::uint32_t address = 0;       // a byte that wave 1 writes and wave 0 reads, or the other way round
  bool waited = false;             // the write is complete at the read: only the barrier is missing
  FlowPath path;                   // from the write to the read, the same in both waves
};

// Follows each ds_write_* to reads that a path reaches without s_waitcnt for the write and then s_barrier, and compares the addresses
// of waves 0 and 1. Silent when addresses or active lanes depend on more than the work-item id, when a branch may keep a wave from
// either instruction, and for workgroups of one wave. Ends within a bounded number of steps.
std::vector<LdsRace> lds_races(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                               const Resources& resources);

} // namespace kiln::isa
