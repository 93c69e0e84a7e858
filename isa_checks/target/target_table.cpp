// The target table: one row an architecture.
#include "isa_checks/target/target_table.h"
#include "isa_checks/error.h"
#include <string>

namespace kiln::isa {
namespace {

constexpr TargetFacts target_rows[] = {
    {.arch = "gfx90a", // MI200: counts are of one die, 110 CUs on the MI250X
     .elf_machine = 0x3f,
     .generation = Generation::cdna2,
     .compute_units = 110,
     .instruction_cache_bytes = 32 * 1024,
     .memory_gbs = 1638,
     .clock_mhz = 1700,
     .lds_bytes = 64 * 1024,
     .lds_granule_bytes = 512,
     .lds_read_banks = 32,
     .lds_dma_base_bits = 16,
     .fp8 = Fp8Format::none,
     .wide_lds_dma = false,
     .lds_transpose_reads = false,
     .doubled_mfma = false,
     .scaled_mfma = false,
     .native_bf16_convert = false,
     .dot2_bf16 = false,
     .permlane_swap = false},
    {.arch = "gfx942", // MI300X; the MI300A has 228 CUs
     .elf_machine = 0x4c,
     .generation = Generation::cdna3,
     .compute_units = 304,
     .instruction_cache_bytes = 64 * 1024,
     .memory_gbs = 5300,
     .clock_mhz = 2100,
     .lds_bytes = 64 * 1024,
     .lds_granule_bytes = 512,
     .lds_read_banks = 32,
     .lds_dma_base_bits = 16,
     .fp8 = Fp8Format::fnuz,
     .wide_lds_dma = false,
     .lds_transpose_reads = false,
     .doubled_mfma = false,
     .scaled_mfma = false,
     .native_bf16_convert = false,
     .dot2_bf16 = false,
     .permlane_swap = false},
    {.arch = "gfx950", // MI350X and MI355X
     .elf_machine = 0x4f,
     .generation = Generation::cdna4,
     .compute_units = 256,
     .instruction_cache_bytes = 64 * 1024,
     .memory_gbs = 8000,
     .clock_mhz = 2400,
     .lds_bytes = 160 * 1024,
     .lds_granule_bytes = 1280,
     .lds_read_banks = 64,
     .lds_dma_base_bits = 18,
     .fp8 = Fp8Format::ocp,
     .wide_lds_dma = true,
     .lds_transpose_reads = true,
     .doubled_mfma = true,
     .scaled_mfma = true,
     .native_bf16_convert = true,
     .dot2_bf16 = true,
     .permlane_swap = true,
     .packed_fma_drops_low = true},
};

} // namespace

std::span<const TargetFacts> known_targets() { return target_rows; }

const TargetFacts* find_target(std::string_view arch) {
  for (const TargetFacts& facts : target_rows)
    if (facts.arch == arch) return &facts;
  return nullptr;
}

const TargetFacts* find_target_by_machine(std::uint32_t machine) {
  for (const TargetFacts& facts : target_rows)
    if (facts.elf_machine == machine) return &facts;
  return nullptr;
}

const TargetFacts& target_facts(std::string_view arch) {
  if (const TargetFacts* facts = find_target(arch)) return *facts;
  throw UnknownArch("architecture", "'" + std::string(arch) + "' is not in the target table",
                    "use one of " + std::string(known_target_names()));
}

std::string_view known_target_names() { return "gfx90a, gfx942, gfx950"; }

} // namespace kiln::isa
