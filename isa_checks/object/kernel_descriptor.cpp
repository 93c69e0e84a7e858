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

void decode_rsrc1(KernelDescriptor& d) {
  const std::uint32_t word = d.rsrc1;
  const auto vgpr_granules = field(word, 0, 6);
  // SGPRs are encoded in units of 8 and allocated in pairs of units: LLVM's "2 * (granules - 1)".
  const auto sgpr_units = field(word, 6, 4);
  d.vgprs = (vgpr_granules + 1) * static_cast<std::uint32_t>(vgpr_granule);
  d.sgprs = (sgpr_units / 2 + 1) * static_cast<std::uint32_t>(sgpr_granule);
  d.priority = byte(field(word, 10, 2));
  d.float_round_mode_32 = byte(field(word, 12, 2));
  d.float_round_mode_16_64 = byte(field(word, 14, 2));
  d.float_denorm_mode_32 = byte(field(word, 16, 2));
  d.float_denorm_mode_16_64 = byte(field(word, 18, 2));
  d.priv = bit(word, 20);
  d.dx10_clamp = bit(word, 21);
  d.debug_mode = bit(word, 22);
  d.ieee_mode = bit(word, 23);
  d.bulky = bit(word, 24);
  d.cdbg_user = bit(word, 25);
  d.fp16_overflow = bit(word, 26);
}

void decode_rsrc2(KernelDescriptor& d) {
  const std::uint32_t word = d.rsrc2;
  d.private_segment = bit(word, 0);
  d.user_sgprs = byte(field(word, 1, 5));
  d.trap_handler = bit(word, 6);
  d.workgroup_id_x = bit(word, 7);
  d.workgroup_id_y = bit(word, 8);
  d.workgroup_id_z = bit(word, 9);
  d.workgroup_info = bit(word, 10);
  d.workitem_id = byte(field(word, 11, 2));
  d.exception_address_watch = bit(word, 13);
  d.exception_memory = bit(word, 14);
  d.lds_granulated = field(word, 15, 9);
  d.exception_fp_invalid = bit(word, 24);
  d.exception_fp_denormal = bit(word, 25);
  d.exception_fp_divide_by_zero = bit(word, 26);
  d.exception_fp_overflow = bit(word, 27);
  d.exception_fp_underflow = bit(word, 28);
  d.exception_fp_inexact = bit(word, 29);
  d.exception_int_divide_by_zero = bit(word, 30);
}

void decode_properties(KernelDescriptor& d) {
  const std::uint32_t word = d.code_properties;
  d.sgpr_private_segment_buffer = bit(word, 0);
  d.sgpr_dispatch_ptr = bit(word, 1);
  d.sgpr_queue_ptr = bit(word, 2);
  d.sgpr_kernarg_segment_ptr = bit(word, 3);
  d.sgpr_dispatch_id = bit(word, 4);
  d.sgpr_flat_scratch_init = bit(word, 5);
  d.sgpr_private_segment_size = bit(word, 6);
  d.wavefront_size32 = bit(word, 10);
  d.dynamic_stack = bit(word, 11);
  d.preload_dwords = byte(field(d.kernarg_preload, 0, 7));
  d.preload_offset_dwords = static_cast<std::uint16_t>(field(d.kernarg_preload, 7, 9));
}

} // namespace

KernelDescriptor decode_descriptor(std::span<const std::uint8_t, 64> bytes) {
  KernelDescriptor d;
  const auto read = [bytes](auto& value, std::size_t at) { std::memcpy(&value, bytes.data() + at, sizeof value); };
  read(d.group_segment_bytes, 0);
  read(d.private_segment_bytes, 4);
  read(d.kernarg_bytes, 8);
  read(d.entry_offset, 16);
  read(d.rsrc3, 44);
  read(d.rsrc1, 48);
  read(d.rsrc2, 52);
  read(d.code_properties, 56);
  read(d.kernarg_preload, 58);
  decode_rsrc1(d);
  decode_rsrc2(d);
  d.accum_offset = (field(d.rsrc3, 0, 6) + 1) * static_cast<std::uint32_t>(accum_offset_granule);
  d.tg_split = bit(d.rsrc3, 16);
  decode_properties(d);
  return d;
}

} // namespace kiln::isa
