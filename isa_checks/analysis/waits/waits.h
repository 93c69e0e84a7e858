// Waits: which memory operations are outstanding at each s_waitcnt, followed through the flow graph, and what loops
// keep in flight.
#pragma once
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/program.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::isa {

enum class WaitCounter : std::uint8_t {
  vmcnt,   // global, flat, scratch, buffer and image operations, loads and stores alike, in order
  lgkmcnt, // LDS in order, GDS in order, scalar memory and messages in any order, flat
  expcnt,  // GDS operations that have yet to read their registers, in order
};
inline constexpr std::size_t wait_counter_count = 3;
inline constexpr std::array<int, wait_counter_count> counter_capacity{max_vmcnt, max_lgkmcnt, max_expcnt}; // by WaitCounter
std::string_view to_string(WaitCounter counter);

// One counter of one s_waitcnt. Outstanding means: not yet waited for; it may have completed by itself.
struct WaitPoint {
  std::size_t instruction = 0; // index into the program
  std::size_t loop = nothing;  // the innermost
  WaitCounter counter = WaitCounter::vmcnt;
  int value = 0;                                // the count that may stay outstanding
  int min_outstanding = 0, max_outstanding = 0; // before the wait, over all paths to it
  // Bytes of loads from device memory that are outstanding before a wait for vmcnt, of a full wave; 0 for other counters.
  std::uint32_t min_bytes = 0, max_bytes = 0;
  std::vector<std::size_t> waits_for; // instructions whose operations it may complete, by address
  // Fewest instructions executed from one of those to the wait, neither counted; -1 when it waits for nothing.
  int shortest_distance = -1;
  bool drains() const { return value == 0 && max_outstanding > 0; }
  bool idle() const { return max_outstanding <= value; } // it never has anything to wait for
};

// Loads of device memory (global, buffer and flat; into registers or LDS) that one wave has outstanding while it
// repeats a loop whose state has settled. Bytes are of a full wave: 64 lanes. A loop without loads has zeros.
struct LoopFlight {
  std::size_t loop = 0;
  std::uint32_t loads = 0;                    // instructions in the loop, inner loops included
  std::uint32_t bytes_a_trip = 0;             // of a wave, when each of them runs once
  std::uint32_t min_bytes = 0, max_bytes = 0; // over all points of the loop
  std::uint32_t max_back_bytes = 0;           // on the way back to the header, the most over all latches
  std::uint32_t drains = 0;                   // waits for vmcnt(0) in the loop that have something to wait for
};

struct WaitAnalysis {
  std::vector<WaitPoint> points; // by address, in the order of WaitCounter; unreachable waits are left out
  std::vector<LoopFlight> loops; // one for each loop of the program
  bool approximate = false;      // calls, indirect branches or irreducible flow: states after them are guesses
  // false: the kernel exceeds the work budget, and was not analysed. There are no points then, and loops hold what is
  // known without following the counters: loads and bytes_a_trip.
  bool complete = true;
};

// Operations leave a counter in order, but for flat, scalar memory and messages: while one of those is outstanding, a
// wait for more than 0 may have completed any of them. So may it while both LDS and GDS operations are outstanding.
// Counters saturate at counter_capacity.
//
// expcnt counts ds_gws_* alone on gfx90a, gfx942 and gfx950: these parts have no exports, and their other ds_* cannot
// address GDS (llvm-mc refuses both). That ds_gws_* count in lgkmcnt and in expcnt is from LLVM's SIInsertWaitcnts.cpp
// (GDS_ACCESS, GDS_GPR_LOCK).
// Ends within about two seconds whatever the flow graph: see WaitAnalysis::complete.
WaitAnalysis analyse_waits(const Program& program);

// Operations outstanding before an instruction, over all paths to it.
struct OutstandingCounts {
  bool reached = false; // false: no path from the entry leads here
  int min_vm = 0, max_vm = 0, min_lgkm = 0, max_lgkm = 0, min_exp = 0, max_exp = 0;
};
std::vector<OutstandingCounts> outstanding_counts(const Program& program); // by instruction

std::string to_text(const WaitAnalysis& waits, const Program& program);
std::string to_json(const WaitAnalysis& waits, const Program& program);

} // namespace kiln::isa
