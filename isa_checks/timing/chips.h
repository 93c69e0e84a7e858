// Chip: what the simulation knows of one part: units, clocks, latencies, bandwidths. docs/timing.md gives the source of each.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace kiln::timing {

// Cycles are of the engine clock. A latency is from issue to data with nothing else under way.
struct Chip {
  std::string_view name; // "mi300x"
  std::string_view arch; // "gfx942"
  int cus, xcds;
  double clock_ghz; // that single kernels run at

  // Start and end of a kernel that follows another one in a graph.
  double floor_ns;           // what an empty kernel takes
  double wave_launch_cycles; // of an XCD's dispatcher, for one wave
  double slot_turnover_ns;   // from the end of a workgroup until another one begins in its place

  // Instructions of one wave.
  double dependent_cycles;    // from a vector instruction until one that reads its result
  double taken_branch_cycles; // until the instruction after it issues
  double scalar_load_cycles;  // from the scalar cache or L2
  double lds_latency_cycles;  // without the passes of the access itself
  double lds_pass_cycles;     // of a bank pass
  double barrier_cycles;      // from the last arrival until the waves go on

  // Vector memory.
  double l1_latency_cycles, l2_latency_cycles, mall_latency_ns, hbm_latency_ns;
  int l1_bytes, line_bytes;                    // a CU's vector cache, and the line of L1 and L2
  double l2_bytes, mall_bytes;                 // of an XCD; of the chip
  double l1_bytes_per_cycle;                   // of a CU: its path to registers
  double fill_bytes_per_cycle;                 // of a CU: its path from L2
  double l2_tbs, mall_tbs, hbm_tbs, write_tbs; // of the chip, 1e12 bytes a second; write: to HBM
  double peak_tbs;                             // of the data sheet
  // Beyond so many bytes in flight a CU (all CUs busy), each further byte adds so many nanoseconds.
  double hbm_free_bytes, hbm_ns_per_byte, mall_free_bytes, mall_ns_per_byte;
  double store_ack_cycles;                  // from issue until L2 says that a store is done
  double release_ns, acquire_ns, atomic_ns; // write-back of L2 for others, invalidation, an atomic at device scope
  double peak_tflops_fp8;                   // of the data sheet, dense
};

std::span<const Chip> chips();
// Throws isa::Error naming the chips there are.
const Chip& chip(std::string_view name);
std::string chip_names(); // "mi300x, mi308x, ..."

} // namespace kiln::timing
