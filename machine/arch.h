// The architectures: what a wave, a CU and an instruction set have. The one place of these facts, for the host and for device code (no
// std). docs/hardware.md says how sure each is. "IsaInfo" is namespace IsaInfo of LLVM's AMDGPUBaseInfo.cpp, "gpu-specs" are ROCm's
// hardware specification tables. LLVM's assembler is asked about capabilities (tests/isa/target_test.cpp).
#pragma once

namespace kiln {

// What all of the architectures share, so that arrays and configs can have these sizes. A granule is the unit in which hardware allocates.
inline constexpr int wave_size = 64; // lanes
inline constexpr int max_waves_per_workgroup = 16;
inline constexpr int max_workgroup_size = max_waves_per_workgroup * wave_size; // work-items (IsaInfo); 2048 can be encoded
inline constexpr int simds_per_cu = 4;                                         // IsaInfo::getEUsPerCU
inline constexpr int max_waves_per_simd = 8;                                   // IsaInfo::getMaxWavesPerEU
inline constexpr int max_vgprs = 512;          // of a wave, and of a SIMD for each lane: VGPRs and AGPRs together (IsaInfo)
inline constexpr int max_arch_vgprs = 256;     // v0 to v255, and as many accumulation registers a0 to a255 (IsaInfo)
inline constexpr int vgpr_granule = 8;         // of VGPRs and AGPRs together (IsaInfo::getVGPRAllocGranule)
inline constexpr int accum_offset_granule = 4; // of the VGPRs alone (IsaInfo::getArchVGPRAllocGranule)
inline constexpr int sgpr_granule = 16;        // IsaInfo::getSGPRAllocGranule
inline constexpr int max_vmcnt = 63, max_expcnt = 7, max_lgkmcnt = 15; // largest counts that s_waitcnt encodes (AMDGPUBaseInfo.cpp)
inline constexpr int issue_clocks = 4;                                 // of an instruction of a wave: 64 lanes on 16 lanes of a SIMD
inline constexpr int line_bytes = 128;                                 // of L1 and L2: docs/hardware.md
inline constexpr int lds_write_banks = 32; // HipKittens' measurements of ds_write_b64; AMD's Composable Kernel documentation

namespace machine {

enum class Generation : unsigned char { cdna2, cdna3, cdna4 };
enum class Fp8Format : unsigned char { none, fnuz, ocp }; // what fp8 and bf8 of conversions and matrix instructions mean

struct Arch {
  const char* name;     // "gfx942"
  unsigned elf_machine; // EF_AMDGPU_MACH of e_flags
  Generation generation;
  int compute_units;           // of the largest part (gpu-specs)
  int xcds;                    // of it in its usual partition: workgroups go to them in turn
  int instruction_cache_bytes; // shared by two CUs (gpu-specs)
  int memory_gbs;              // peak bandwidth of device memory, 1e9 bytes per second (AMD's data sheets)
  int memory_latency_ns;       // from issue to data, with nothing else under way, for a load that misses every cache
  int clock_mhz;               // peak engine clock (AMD's data sheets)
  int lds_bytes;               // of a CU, also the most that one workgroup may have (IsaInfo)
  int lds_granule_bytes;       // AMDGPUUsage, "Code Object V3 Kernel Descriptor"; IsaInfo::getLdsDwGranularity
  int lds_read_banks;          // of 4 bytes, that reads see, all but ds_read_b96: HipKittens' measurements
  int lds_latency_clocks;      // from issue to data, without the passes of the access
  int lds_dma_base_bits;       // of M0, that a load to LDS adds to its address. CDNA4's is not public: 160 KiB need 18
  Fp8Format fp8;               // AMD's blog "Matrix Core Programming on CDNA3 and CDNA4"

  // Instructions that only some architectures have.
  bool wide_lds_dma;        // global_load_lds_dwordx3 and x4, buffer_load_dwordx3 and x4 with lds; the others move 4 bytes per lane
  bool lds_transpose_reads; // ds_read_b64_tr_b16, _b8 and _b4, ds_read_b96_tr_b6
  bool doubled_mfma;        // shapes of twice the k in the same passes: v_mfma_f32_16x16x32_f16
  bool scaled_mfma;         // v_mfma_*_f8f6f4 and v_mfma_scale_*: a format for each operand, a scale for 32 of k
  bool scaled_convert;      // v_cvt_scalef32_*, between wide types and OCP's 4 to 8 bits
  bool native_bf16_convert; // v_cvt_pk_bf16_f32
  bool dot2_bf16;           // v_dot2_f32_bf16
  bool permlane_swap;       // v_permlane16_swap_b32, v_permlane32_swap_b32

  bool packed_fma_drops_low; // a fault of the hardware: docs/rules/ERR001.md
};

// MI200: counts are of one die, 110 CUs on the MI250X. Latencies are ASSUMED: pointer chases that were published for MI200 lie between 600
// and 900 ns.
inline constexpr Arch gfx90a{.name = "gfx90a",
                             .elf_machine = 0x3f,
                             .generation = Generation::cdna2,
                             .compute_units = 110,
                             .xcds = 1,
                             .instruction_cache_bytes = 32 * 1024,
                             .memory_gbs = 1638,
                             .memory_latency_ns = 800,
                             .clock_mhz = 1700,
                             .lds_bytes = 64 * 1024,
                             .lds_granule_bytes = 512,
                             .lds_read_banks = 32,
                             .lds_latency_clocks = 64,
                             .lds_dma_base_bits = 16,
                             .fp8 = Fp8Format::none,
                             .wide_lds_dma = false,
                             .lds_transpose_reads = false,
                             .doubled_mfma = false,
                             .scaled_mfma = false,
                             .scaled_convert = false,
                             .native_bf16_convert = false,
                             .dot2_bf16 = false,
                             .permlane_swap = false,
                             .packed_fma_drops_low = false};

// MI300X: 8 dies of 38 CUs; the MI300A has 228. Latencies: docs/timing.md.
inline constexpr Arch gfx942{.name = "gfx942",
                             .elf_machine = 0x4c,
                             .generation = Generation::cdna3,
                             .compute_units = 304,
                             .xcds = 8,
                             .instruction_cache_bytes = 64 * 1024,
                             .memory_gbs = 5300,
                             .memory_latency_ns = 425,
                             .clock_mhz = 2100,
                             .lds_bytes = 64 * 1024,
                             .lds_granule_bytes = 512,
                             .lds_read_banks = 32,
                             .lds_latency_clocks = 48,
                             .lds_dma_base_bits = 16,
                             .fp8 = Fp8Format::fnuz,
                             .wide_lds_dma = false,
                             .lds_transpose_reads = false,
                             .doubled_mfma = false,
                             .scaled_mfma = false,
                             .scaled_convert = false,
                             .native_bf16_convert = false,
                             .dot2_bf16 = false,
                             .permlane_swap = false,
                             .packed_fma_drops_low = false};

// MI350X and MI355X: 8 dies of 32 CUs. Latencies: docs/timing.md.
inline constexpr Arch gfx950{.name = "gfx950",
                             .elf_machine = 0x4f,
                             .generation = Generation::cdna4,
                             .compute_units = 256,
                             .xcds = 8,
                             .instruction_cache_bytes = 64 * 1024,
                             .memory_gbs = 8000,
                             .memory_latency_ns = 362,
                             .clock_mhz = 2400,
                             .lds_bytes = 160 * 1024,
                             .lds_granule_bytes = 1280,
                             .lds_read_banks = 64,
                             .lds_latency_clocks = 61,
                             .lds_dma_base_bits = 18,
                             .fp8 = Fp8Format::ocp,
                             .wide_lds_dma = true,
                             .lds_transpose_reads = true,
                             .doubled_mfma = true,
                             .scaled_mfma = true,
                             .scaled_convert = true,
                             .native_bf16_convert = true,
                             .dot2_bf16 = true,
                             .permlane_swap = true,
                             .packed_fma_drops_low = true};

inline constexpr Arch archs[] = {gfx90a, gfx942, gfx950};

constexpr int min_lds_bytes() {
  int least = archs[0].lds_bytes;
  for (const Arch& arch : archs) least = arch.lds_bytes < least ? arch.lds_bytes : least;
  return least;
}

} // namespace machine
} // namespace kiln
