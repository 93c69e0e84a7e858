// The target table: one row an architecture.
#include "isa_checks/target/target_table.h"
#include "isa_checks/error.h"
#include <string>

namespace kiln::isa {
namespace {

constexpr TargetFacts table[] = {
    {.arch = "gfx90a", // MI200: counts are of one die, 110 CUs on the MI250X
     .elf_machine = 0x3f,
     .compute_units = 110,
     .simds_per_cu = 4,
     .wave_size = 64,
     .max_waves_per_simd = 8,
     .max_workgroup_size = 1024,
     .vgprs_per_simd = 512,
     .vgpr_granule = 8,
     .accum_offset_granule = 4,
     .max_arch_vgprs = 256,
     .sgprs_per_simd = 800,
     .sgpr_granule = 16,
     .lds_bytes = 64 * 1024,
     .lds_granule_bytes = 512,
     .instruction_cache_bytes = 32 * 1024,
     .lds_read_banks = 32,
     .memory_gbs = 1638,
     .clock_mhz = 1700,
     .memory_latency_ns = 800,
     .fp8_is_fnuz = false},
    {.arch = "gfx942", // MI300X; the MI300A has 228 CUs
     .elf_machine = 0x4c,
     .compute_units = 304,
     .simds_per_cu = 4,
     .wave_size = 64,
     .max_waves_per_simd = 8,
     .max_workgroup_size = 1024,
     .vgprs_per_simd = 512,
     .vgpr_granule = 8,
     .accum_offset_granule = 4,
     .max_arch_vgprs = 256,
     .sgprs_per_simd = 800,
     .sgpr_granule = 16,
     .lds_bytes = 64 * 1024,
     .lds_granule_bytes = 512,
     .instruction_cache_bytes = 64 * 1024,
     .lds_read_banks = 32,
     .memory_gbs = 5300,
     .clock_mhz = 2100,
     .memory_latency_ns = 800,
     .fp8_is_fnuz = true},
    {.arch = "gfx950", // MI350X and MI355X
     .elf_machine = 0x4f,
     .compute_units = 256,
     .simds_per_cu = 4,
     .wave_size = 64,
     .max_waves_per_simd = 8,
     .max_workgroup_size = 1024,
     .vgprs_per_simd = 512,
     .vgpr_granule = 8,
     .accum_offset_granule = 4,
     .max_arch_vgprs = 256,
     .sgprs_per_simd = 800,
     .sgpr_granule = 16,
     .lds_bytes = 160 * 1024,
     .lds_granule_bytes = 1280,
     .instruction_cache_bytes = 64 * 1024,
     .lds_read_banks = 64,
     .memory_gbs = 8000,
     .clock_mhz = 2400,
     .memory_latency_ns = 800,
     .fp8_is_fnuz = false,
     .later_matrix_results = true},
};

} // namespace

std::span<const TargetFacts> known_targets() { return table; }

const TargetFacts* find_target(std::string_view arch) {
  for (const TargetFacts& facts : table)
    if (facts.arch == arch)
      return &facts;
  return nullptr;
}

const TargetFacts* find_target_by_machine(std::uint32_t machine) {
  for (const TargetFacts& facts : table)
    if (facts.elf_machine == machine)
      return &facts;
  return nullptr;
}

const TargetFacts& target_facts(std::string_view arch) {
  if (const TargetFacts* facts = find_target(arch))
    return *facts;
  throw UnknownArch("architecture", "'" + std::string(arch) + "' is not in the target table",
                    "use one of " + std::string(known_target_names()));
}

std::string_view known_target_names() { return "gfx90a, gfx942, gfx950"; }

} // namespace kiln::isa
