// The facts of each architecture that isa_checks reads: registers, LDS, waves, compute units.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::isa {

// Counts are per what the name says; `granule` is the unit in which the hardware allocates. Sources: LLVM's
// AMDGPUBaseInfo.cpp (IsaInfo) and AMD's gpu-specs tables; the register and LDS granules were checked against LLVM's
// kernel-resource-usage remarks.
struct TargetFacts {
  std::string_view arch;     // "gfx942"
  std::uint32_t elf_machine; // EF_AMDGPU_MACH of e_flags
  int compute_units;         // of the largest part
  int simds_per_cu;
  int wave_size;
  int max_waves_per_simd;
  int max_workgroup_size;
  int vgprs_per_simd;       // per lane, architectural and accumulation registers together
  int vgpr_granule;         // of the total
  int accum_offset_granule; // of the architectural part
  int max_arch_vgprs;       // addressable without accumulation registers
  int sgprs_per_simd;
  int sgpr_granule;
  int lds_bytes; // per CU, also the most one workgroup may have
  int lds_granule_bytes;
  int instruction_cache_bytes; // shared by two CUs
  int lds_read_banks;          // of 4 bytes, that reads see (all but ds_read_b96); writes see 32 everywhere
  int memory_gbs;              // peak bandwidth of device memory, 1e9 bytes a second
  int clock_mhz;               // peak engine clock
  // From issue to data, for a load that misses every cache. ASSUMED, for Little's law only: pointer chases that were
  // published for MI200 and MI300 lie between 600 and 900.
  int memory_latency_ns;
  bool fp8_is_fnuz;            // what the fp8 conversions and matrix operations mean; false where OCP or absent
  bool later_matrix_results = false; // software has to leave a wait state more after most matrix instructions
};

std::span<const TargetFacts> known_targets();
const TargetFacts* find_target(std::string_view arch);            // null when unknown
const TargetFacts* find_target_by_machine(std::uint32_t machine); // by EF_AMDGPU_MACH; null when unknown
const TargetFacts& target_facts(std::string_view arch);           // throws UnknownArch naming the known ones
std::string_view known_target_names();                            // "gfx90a, gfx942, gfx950", for messages

} // namespace kiln::isa
