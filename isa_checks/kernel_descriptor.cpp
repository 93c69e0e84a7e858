// Decoding a kernel descriptor's words into fields.
#include "isa_checks/kernel_descriptor.h"
#include <cstring>
#include <fmt/format.h>
#include <llvm/Support/AMDHSAKernelDescriptor.h>

namespace kiln::isa {
namespace {

namespace hsa = llvm::amdhsa;

// The field of `word` under one of LLVM's contiguous masks; unsigned, because the topmost masks are negative as int32.
constexpr std::uint32_t field(std::uint32_t word, std::int32_t mask, std::int32_t shift) {
  return (word & static_cast<std::uint32_t>(mask)) >> shift;
}
constexpr bool bit(std::uint32_t word, std::int32_t mask) { return (word & static_cast<std::uint32_t>(mask)) != 0; }
constexpr std::uint8_t byte(std::uint32_t value) { return static_cast<std::uint8_t>(value); }

void decode_rsrc1(KernelDescriptor& d, const TargetFacts& target) {
  const std::uint32_t word = d.rsrc1;
  const auto vgpr_granules = field(word, hsa::COMPUTE_PGM_RSRC1_GRANULATED_WORKITEM_VGPR_COUNT, 0);
  // SGPRs are encoded in units of 8 and allocated in pairs of units: LLVM's "2 * (granules - 1)".
  const auto sgpr_units = field(word, hsa::COMPUTE_PGM_RSRC1_GRANULATED_WAVEFRONT_SGPR_COUNT, 6);
  d.vgprs = (vgpr_granules + 1) * static_cast<std::uint32_t>(target.vgpr_granule);
  d.sgprs = (sgpr_units / 2 + 1) * static_cast<std::uint32_t>(target.sgpr_granule);
  d.priority = byte(field(word, hsa::COMPUTE_PGM_RSRC1_PRIORITY, 10));
  d.float_round_mode_32 = byte(field(word, hsa::COMPUTE_PGM_RSRC1_FLOAT_ROUND_MODE_32, 12));
  d.float_round_mode_16_64 = byte(field(word, hsa::COMPUTE_PGM_RSRC1_FLOAT_ROUND_MODE_16_64, 14));
  d.float_denorm_mode_32 = byte(field(word, hsa::COMPUTE_PGM_RSRC1_FLOAT_DENORM_MODE_32, 16));
  d.float_denorm_mode_16_64 = byte(field(word, hsa::COMPUTE_PGM_RSRC1_FLOAT_DENORM_MODE_16_64, 18));
  d.priv = bit(word, hsa::COMPUTE_PGM_RSRC1_PRIV);
  d.dx10_clamp = bit(word, hsa::COMPUTE_PGM_RSRC1_GFX6_GFX11_ENABLE_DX10_CLAMP);
  d.debug_mode = bit(word, hsa::COMPUTE_PGM_RSRC1_DEBUG_MODE);
  d.ieee_mode = bit(word, hsa::COMPUTE_PGM_RSRC1_GFX6_GFX11_ENABLE_IEEE_MODE);
  d.bulky = bit(word, hsa::COMPUTE_PGM_RSRC1_BULKY);
  d.cdbg_user = bit(word, hsa::COMPUTE_PGM_RSRC1_CDBG_USER);
  d.fp16_overflow = bit(word, hsa::COMPUTE_PGM_RSRC1_GFX9_PLUS_FP16_OVFL);
}

void decode_rsrc2(KernelDescriptor& d) {
  const std::uint32_t word = d.rsrc2;
  d.private_segment = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_PRIVATE_SEGMENT);
  d.user_sgprs = byte((word >> 1) & 31); // USER_SGPR_COUNT; LLVM renames the mask between releases
  d.trap_handler = bit(word, 1 << 6);
  d.workgroup_id_x = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_X);
  d.workgroup_id_y = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_Y);
  d.workgroup_id_z = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_Z);
  d.workgroup_info = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_INFO);
  d.workitem_id = byte(field(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_VGPR_WORKITEM_ID, 11));
  d.exception_address_watch = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_ADDRESS_WATCH);
  d.exception_memory = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_MEMORY);
  d.lds_granulated = field(word, hsa::COMPUTE_PGM_RSRC2_GRANULATED_LDS_SIZE, 15);
  d.exception_fp_invalid = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_IEEE_754_FP_INVALID_OPERATION);
  d.exception_fp_denormal = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_FP_DENORMAL_SOURCE);
  d.exception_fp_divide_by_zero = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_IEEE_754_FP_DIVISION_BY_ZERO);
  d.exception_fp_overflow = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_IEEE_754_FP_OVERFLOW);
  d.exception_fp_underflow = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_IEEE_754_FP_UNDERFLOW);
  d.exception_fp_inexact = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_IEEE_754_FP_INEXACT);
  d.exception_int_divide_by_zero = bit(word, hsa::COMPUTE_PGM_RSRC2_ENABLE_EXCEPTION_INT_DIVIDE_BY_ZERO);
}

void decode_properties(KernelDescriptor& d) {
  const std::uint32_t word = d.code_properties;
  d.sgpr_private_segment_buffer = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER);
  d.sgpr_dispatch_ptr = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR);
  d.sgpr_queue_ptr = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR);
  d.sgpr_kernarg_segment_ptr = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR);
  d.sgpr_dispatch_id = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID);
  d.sgpr_flat_scratch_init = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_FLAT_SCRATCH_INIT);
  d.sgpr_private_segment_size = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE);
  d.wavefront_size32 = bit(word, hsa::KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32);
  d.dynamic_stack = bit(word, hsa::KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK);
  d.preload_dwords = byte(field(d.kernarg_preload, hsa::KERNARG_PRELOAD_SPEC_LENGTH, 0));
  d.preload_offset_dwords = static_cast<std::uint16_t>(field(d.kernarg_preload, hsa::KERNARG_PRELOAD_SPEC_OFFSET, 7));
}

} // namespace

KernelDescriptor decode_descriptor(std::span<const std::uint8_t, 64> bytes, const TargetFacts& target) {
  hsa::kernel_descriptor_t raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  KernelDescriptor d;
  d.group_segment_bytes = raw.group_segment_fixed_size;
  d.private_segment_bytes = raw.private_segment_fixed_size;
  d.kernarg_bytes = raw.kernarg_size;
  d.entry_offset = raw.kernel_code_entry_byte_offset;
  d.rsrc1 = raw.compute_pgm_rsrc1;
  d.rsrc2 = raw.compute_pgm_rsrc2;
  d.rsrc3 = raw.compute_pgm_rsrc3;
  d.code_properties = raw.kernel_code_properties;
  d.kernarg_preload = raw.kernarg_preload;
  decode_rsrc1(d, target);
  decode_rsrc2(d);
  d.accum_offset =
      (field(d.rsrc3, hsa::COMPUTE_PGM_RSRC3_GFX90A_ACCUM_OFFSET, 0) + 1) * static_cast<std::uint32_t>(target.accum_offset_granule);
  d.tg_split = bit(d.rsrc3, hsa::COMPUTE_PGM_RSRC3_GFX90A_TG_SPLIT);
  decode_properties(d);
  return d;
}

std::string to_text(const KernelDescriptor& d) {
  std::string text;
  const auto line = [&text](std::string_view name, std::int64_t value) { text += fmt::format("{:<32} {}\n", name, value); };
  line("group_segment_bytes", d.group_segment_bytes);
  line("private_segment_bytes", d.private_segment_bytes);
  line("kernarg_bytes", d.kernarg_bytes);
  line("entry_offset", d.entry_offset);
  line("vgprs", d.vgprs);
  line("accum_offset", d.accum_offset);
  line("sgprs", d.sgprs);
  line("priority", d.priority);
  line("float_round_mode_32", d.float_round_mode_32);
  line("float_round_mode_16_64", d.float_round_mode_16_64);
  line("float_denorm_mode_32", d.float_denorm_mode_32);
  line("float_denorm_mode_16_64", d.float_denorm_mode_16_64);
  line("priv", d.priv);
  line("dx10_clamp", d.dx10_clamp);
  line("debug_mode", d.debug_mode);
  line("ieee_mode", d.ieee_mode);
  line("bulky", d.bulky);
  line("cdbg_user", d.cdbg_user);
  line("fp16_overflow", d.fp16_overflow);
  line("private_segment", d.private_segment);
  line("user_sgprs", d.user_sgprs);
  line("trap_handler", d.trap_handler);
  line("workgroup_id_x", d.workgroup_id_x);
  line("workgroup_id_y", d.workgroup_id_y);
  line("workgroup_id_z", d.workgroup_id_z);
  line("workgroup_info", d.workgroup_info);
  line("workitem_id", d.workitem_id);
  line("exception_address_watch", d.exception_address_watch);
  line("exception_memory", d.exception_memory);
  line("lds_granulated", d.lds_granulated);
  line("exception_fp_invalid", d.exception_fp_invalid);
  line("exception_fp_denormal", d.exception_fp_denormal);
  line("exception_fp_divide_by_zero", d.exception_fp_divide_by_zero);
  line("exception_fp_overflow", d.exception_fp_overflow);
  line("exception_fp_underflow", d.exception_fp_underflow);
  line("exception_fp_inexact", d.exception_fp_inexact);
  line("exception_int_divide_by_zero", d.exception_int_divide_by_zero);
  line("tg_split", d.tg_split);
  line("sgpr_private_segment_buffer", d.sgpr_private_segment_buffer);
  line("sgpr_dispatch_ptr", d.sgpr_dispatch_ptr);
  line("sgpr_queue_ptr", d.sgpr_queue_ptr);
  line("sgpr_kernarg_segment_ptr", d.sgpr_kernarg_segment_ptr);
  line("sgpr_dispatch_id", d.sgpr_dispatch_id);
  line("sgpr_flat_scratch_init", d.sgpr_flat_scratch_init);
  line("sgpr_private_segment_size", d.sgpr_private_segment_size);
  line("wavefront_size32", d.wavefront_size32);
  line("dynamic_stack", d.dynamic_stack);
  line("preload_dwords", d.preload_dwords);
  line("preload_offset_dwords", d.preload_offset_dwords);
  return text;
}

} // namespace kiln::isa
