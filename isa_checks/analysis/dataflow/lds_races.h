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
  std::size_t first = 0, second = 0; // instructions: a write and a read, or a read and a write
  bool reads_first = false;
  int first_wave = 0, second_wave = 0; // of the workgroup, that meet
  std::uint32_t address = 0;           // a byte in which they do
  bool waited = false;                 // the first is complete at the second: only the barrier is missing
  FlowPath path;                       // from the first to the second, the same in both waves
};

// Follows each ds_write_* to reads that a path reaches without s_waitcnt for the write and then s_barrier, and each ds_read_* to writes
// without s_barrier between, and compares the addresses of all pairs of waves. Silent when addresses or active lanes depend on more
// than the work-item id, when a branch that waves take differently leads to either instruction (wave_uniform.h), and for workgroups of
// one wave. Ends within a bounded number of steps.
std::vector<LdsRace> lds_races(const Program& program, const std::vector<Operands>& operands, const Kernel& kernel,
                               const Resources& resources);

} // namespace kiln::isa
