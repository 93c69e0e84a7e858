// KernelDescriptor: the 64 bytes from which the command processor starts a kernel (the amdhsa kernel descriptor), by
// field.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace kiln::isa {

// Those that something asks for. Field names follow LLVM's AMDGPUUsage, "Kernel Descriptor"; the layout is that of gfx90a, gfx942 and
// gfx950.
struct KernelDescriptor {
  std::uint32_t group_segment_bytes = 0;   // LDS, static part
  std::uint32_t private_segment_bytes = 0; // scratch per lane
  std::uint32_t kernarg_bytes = 0;
  std::int64_t entry_offset = 0; // of the first instruction, from the descriptor's own address; 0 before linking

  // rsrc1
  std::uint32_t vgprs = 0;                                            // allocated, in registers, accumulation registers included
  std::uint32_t sgprs = 0;                                            // allocated, in registers
  std::uint8_t float_round_mode_32 = 0, float_round_mode_16_64 = 0;   // 0: to nearest even
  std::uint8_t float_denorm_mode_32 = 0, float_denorm_mode_16_64 = 0; // 0: flush all .. 3: keep all
  bool dx10_clamp = false, ieee_mode = false, fp16_overflow = false;

  // rsrc2
  bool private_segment = false; // scratch is set up
  std::uint8_t user_sgprs = 0;  // preloaded ones included
  bool workgroup_id_x = false, workgroup_id_y = false, workgroup_id_z = false, workgroup_info = false;
  std::uint8_t workitem_id = 0; // 0: x; 1: x and y; 2: x, y and z; packed in v0, ten bits each

  // rsrc3
  std::uint32_t accum_offset = 0; // first accumulation register in the unified file

  // kernel code properties: which user SGPRs are set up, in this order
  bool sgpr_private_segment_buffer = false; // 4 registers
  bool sgpr_dispatch_ptr = false;           // 2
  bool sgpr_queue_ptr = false;              // 2
  bool sgpr_kernarg_segment_ptr = false;    // 2
  bool sgpr_dispatch_id = false;            // 2
  bool sgpr_flat_scratch_init = false;      // 2
  bool sgpr_private_segment_size = false;   // 1
  bool dynamic_stack = false;

  // kernarg preload: this many dwords from this dword of the kernarg segment follow the user SGPRs above
  std::uint8_t preload_dwords = 0;
  std::uint16_t preload_offset_dwords = 0;

  bool operator==(const KernelDescriptor&) const = default;
};

KernelDescriptor decode_descriptor(std::span<const std::uint8_t, 64> bytes);

} // namespace kiln::isa
