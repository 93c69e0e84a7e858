// TargetFacts: what each architecture has and can do. The one place of isa_checks where architectures are told apart.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::isa {

enum class Generation : std::uint8_t { cdna2, cdna3, cdna4 }; // the columns of hazards.cpp and matrix_shape.cpp; only this folder asks
enum class Fp8Format : std::uint8_t { none, fnuz, ocp };      // what the fp8 and bf8 of conversions and matrix instructions mean

// `granule` is the unit in which the hardware allocates. Sources: "IsaInfo" is namespace IsaInfo of LLVM's AMDGPUBaseInfo.cpp,
// "gpu-specs" are ROCm's hardware specification tables. Register and LDS granules were compared with LLVM's
// kernel-resource-usage remarks; capabilities are compared with LLVM's assembler by tests/isa/target_test.cpp.
struct TargetFacts {
  // What all known architectures share, so that arrays can have these sizes.
  static constexpr int wave_size = 64;       // lanes
  static constexpr int max_vgprs = 512;      // of a wave, and of a SIMD for each lane: architectural and accumulation (IsaInfo)
  static constexpr int max_arch_vgprs = 256; // v0 to v255, and as many accumulation registers a0 to a255 (IsaInfo)
  static constexpr int max_waves_per_workgroup = 16;
  static constexpr int max_workgroup_size = max_waves_per_workgroup * wave_size; // IsaInfo; 2048 can be encoded
  static constexpr int max_vmcnt = 63, max_expcnt = 7, max_lgkmcnt = 15; // largest counts that s_waitcnt encodes (AMDGPUBaseInfo.cpp)
  static constexpr int lds_write_banks = 32; // HipKittens' measurements of ds_write_b64; AMD's Composable Kernel documentation

  std::string_view arch;     // "gfx942"
  std::uint32_t elf_machine; // EF_AMDGPU_MACH of e_flags
  Generation generation;
  int compute_units;           // of the largest part (gpu-specs)
  int instruction_cache_bytes; // shared by two CUs (gpu-specs)
  int memory_gbs;              // peak bandwidth of device memory, 1e9 bytes a second (AMD's data sheets)
  int clock_mhz;               // peak engine clock (AMD's data sheets)
  int lds_bytes;               // of a CU, also the most that one workgroup may have (IsaInfo)
  int lds_granule_bytes;       // AMDGPUUsage, "Code Object V3 Kernel Descriptor"; IsaInfo::getLdsDwGranularity
  int lds_read_banks;          // of 4 bytes, that reads see, all but ds_read_b96: HipKittens' measurements
  int lds_dma_base_bits;       // of M0, that a load to LDS adds to its address. CDNA4's is not public: 160 KiB need 18
  Fp8Format fp8;               // AMD's blog "Matrix Core Programming on CDNA3 and CDNA4"

  // Instructions that only some architectures have.
  bool wide_lds_dma;        // global_load_lds_dwordx3 and x4, buffer_load_dwordx3 and x4 with lds; the others move 4 bytes a lane
  bool lds_transpose_reads; // ds_read_b64_tr_b16, _b8 and _b4, ds_read_b96_tr_b6
  bool doubled_mfma;        // shapes of twice the k in the same passes: v_mfma_f32_16x16x32_f16
  bool scaled_mfma;         // v_mfma_*_f8f6f4 and v_mfma_scale_*: a format for each operand, a scale for 32 of k
  bool native_bf16_convert; // v_cvt_pk_bf16_f32
  bool dot2_bf16;           // v_dot2_f32_bf16
  bool permlane_swap;       // v_permlane16_swap_b32, v_permlane32_swap_b32

  bool packed_fma_drops_low = false; // a fault of the hardware: docs/rules/ERR001.md

  int simds_per_cu = 4;         // IsaInfo::getEUsPerCU
  int max_waves_per_simd = 8;   // IsaInfo::getMaxWavesPerEU
  int vgpr_granule = 8;         // of the total (IsaInfo::getVGPRAllocGranule)
  int accum_offset_granule = 4; // of the architectural part (IsaInfo::getArchVGPRAllocGranule)
  int sgpr_granule = 16;        // IsaInfo::getSGPRAllocGranule
  // From issue to data, for a load that misses every cache. ASSUMED, for Little's law only: pointer chases that were
  // published for MI200 and MI300 lie between 600 and 900.
  int memory_latency_ns = 800;
};

std::span<const TargetFacts> known_targets();
const TargetFacts* find_target(std::string_view arch);            // null when unknown
const TargetFacts* find_target_by_machine(std::uint32_t machine); // by EF_AMDGPU_MACH; null when unknown
const TargetFacts& target_facts(std::string_view arch);           // throws UnknownArch naming the known ones
std::string_view known_target_names();                            // "gfx90a, gfx942, gfx950", for messages

} // namespace kiln::isa
