// Decoding a kernel descriptor's words into fields. Bit positions: AMDGPUUsage, "Kernel Descriptor" and the tables of
// compute_pgm_rsrc1 to 3 for GFX6-GFX12 and GFX90A; they are ABI, while the names of LLVM's masks change.
#include "isa_checks/object/kernel_descriptor.h"
#include "machine/arch.h"
#include <cstring>

namespace kiln::isa {
namespace {

constexpr std::uint32_t field(std::uint32_t word, int first_bit, int bits) { return (word >> first_bit) & ((1u << bits) - 1); }
constexpr bool bit(std::uint32_t word, int position) { return field(word, position, 1) != 0; }
constexpr std::uint8_t byte(std::uint32_t value) { return static_cast<std::uint8_t>(value); }

void decode_rsrc1(std::uint32_t word, KernelDescriptor& d) {
  const auto vgpr_granules = field(word, 0, 6);
  // SGPRs are encoded in units of 8 and allocated in pairs of units: LLVM's "2 * (granules - 1)".
  const auto sgpr_units = field(word, 6, 4);
  d.vgprs = (vgpr_granules + 1) * static_cast<std::uint32_t>(vgpr_granule);
  d.sgprs = (sgpr_units / 2 + 1) * static_cast<std::uint32_t>(sgpr_granule);
  d.float_round_mode_32 = byte(field(word, 12, 2));
  d.float_round_mode_16_64 = byte(field(word, 14, 2));
  d.float_denorm_mode_32 = byte(field(word, 16, 2));
  d.float_denorm_mode_16_64 = byte(field(word, 18, 2));
  d.dx10_clamp = bit(word, 21);
  d.ieee_mode = bit(word, 23);
  d.fp16_overflow = bit(word, 26);
}

void decode_rsrc2(std::uint32_t word, KernelDescriptor& d) {
  d.private_segment = bit(word, 0);
  d.user_sgprs = byte(field(word, 1, 5));
  d.workgroup_id_x = bit(word, 7);
  d.workgroup_id_y = bit(word, 8);
  d.workgroup_id_z = bit(word, 9);
  d.workgroup_info = bit(word, 10);
  d.workitem_id = byte(field(word, 11, 2));
}

void decode_properties(std::uint32_t word, KernelDescriptor& d) {
  d.sgpr_private_segment_buffer = bit(word, 0);
  d.sgpr_dispatch_ptr = bit(word, 1);
  d.sgpr_queue_ptr = bit(word, 2);
  d.sgpr_kernarg_segment_ptr = bit(word, 3);
  d.sgpr_dispatch_id = bit(word, 4);
  d.sgpr_flat_scratch_init = bit(word, 5);
  d.sgpr_private_segment_size = bit(word, 6);
  d.dynamic_stack = bit(word, 11);
  d.preload_dwords = byte(field(word, 16, 7));
  d.preload_offset_dwords = static_cast<std::uint16_t>(field(word, 23, 9));
}

} // namespace

KernelDescriptor decode_descriptor(std::span<const std::uint8_t, 64> bytes) {
  KernelDescriptor d;
  const auto word = [bytes](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  d.group_segment_bytes = word(0);
  d.private_segment_bytes = word(4);
  d.kernarg_bytes = word(8);
  std::memcpy(&d.entry_offset, bytes.data() + 16, sizeof d.entry_offset);
  d.accum_offset = (field(word(44), 0, 6) + 1) * static_cast<std::uint32_t>(accum_offset_granule); // rsrc3
  decode_rsrc1(word(48), d);
  decode_rsrc2(word(52), d);
  decode_properties(word(56), d); // and the arguments that are preloaded in its upper half
  return d;
}

} // namespace kiln::isa
