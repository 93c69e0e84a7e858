// Classification by mnemonic tables: LLVM's public MC API has no such flags. Written for gfx90a, gfx942 and gfx950.
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::isa {
namespace {

using Text = std::string_view;

template <std::size_t N> bool begins_with_any(Text text, const std::array<Text, N>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [text](Text prefix) { return text.starts_with(prefix); });
}
bool contains(Text text, Text part) { return text.find(part) != Text::npos; }

InstructionClass classify_scalar(Text m) {
  static constexpr std::array<Text, 6> memory{"s_load_", "s_store_", "s_buffer_", "s_scratch_", "s_atomic_", "s_dcache_"};
  static constexpr std::array<Text, 11> control{"s_endpgm", "s_sendmsg", "s_sethalt", "s_trap",       "s_sleep",  "s_setprio",
                                                "s_icache", "s_incperf", "s_decperf", "s_ttracedata", "s_setkill"};
  static constexpr std::array<Text, 6> branches{"s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_rfe"};
  if (m.starts_with("s_waitcnt")) return InstructionClass::wait;
  if (m == "s_nop") return InstructionClass::nop;
  if (m == "s_barrier") return InstructionClass::barrier;
  if (begins_with_any(m, branches)) return InstructionClass::branch;
  if (begins_with_any(m, memory) || m == "s_memtime" || m == "s_memrealtime" || m.starts_with("s_atc_probe")) return InstructionClass::smem;
  return begins_with_any(m, control) ? InstructionClass::other : InstructionClass::salu;
}

InstructionClass classify_vector(Text m) {
  static constexpr std::array<Text, 7> trans{"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"};
  if (m.starts_with("v_mfma_") || m.starts_with("v_smfmac_")) return InstructionClass::mfma;
  if (m.starts_with("v_dot")) return InstructionClass::dot;
  if (m.starts_with("v_pk_")) return InstructionClass::packed;
  if (begins_with_any(m, trans)) return InstructionClass::trans;
  return m == "v_nop" ? InstructionClass::nop : InstructionClass::valu;
}

bool is_cache_control(Text m) { return m.starts_with("buffer_wb") || m.starts_with("buffer_inv") || m.starts_with("buffer_gl"); }

// Bytes from the last part of a name: "dwordx4", "ubyte", "short_d16_hi", "format_d16_xyz".
int vmem_bytes(Text m) {
  if (contains(m, "dwordx4")) return 16;
  if (contains(m, "dwordx3")) return 12;
  if (contains(m, "dwordx2")) return 8;
  if (contains(m, "dword")) return 4;
  if (contains(m, "byte")) return 1;
  if (contains(m, "short")) return 2;
  if (contains(m, "format")) {
    const int values = m.ends_with("xyzw") ? 4 : m.ends_with("xyz") ? 3 : m.ends_with("xy") ? 2 : 1;
    return values * (contains(m, "d16") ? 2 : 4);
  }
  return 0;
}

int scalar_bytes(Text m) {
  if (contains(m, "dwordx16")) return 64;
  return contains(m, "dwordx8") ? 32 : vmem_bytes(m);
}

// "b128", "b64_tr_b16", "u8_d16_hi", "pk_add_f16": the first width of the name, once or (read2, write2, wrxchg2) twice.
int lds_bytes(Text m) {
  const bool two = m.starts_with("ds_read2") || m.starts_with("ds_write2") || m.starts_with("ds_wrxchg2");
  if (contains(m, "_pk_")) return 4;
  int bits = 32; // ds_append, ds_consume
  for (std::size_t at = m.find('_'); at != Text::npos; at = m.find('_', at + 1)) {
    if (at + 2 >= m.size() || !contains("biuf", m.substr(at + 1, 1))) continue;
    const Text digits = m.substr(at + 2, m.find('_', at + 1) - (at + 2));
    if (digits == "8" || digits == "16" || digits == "32" || digits == "64" || digits == "96" || digits == "128") {
      bits = digits == "8" ? 8 : digits == "16" ? 16 : digits == "32" ? 32 : digits == "64" ? 64 : digits == "96" ? 96 : 128;
      break;
    }
  }
  return bits / 8 * (two ? 2 : 1);
}

std::optional<MemoryOp> lds_op(Text m) {
  static constexpr std::array<Text, 6> no_memory{"ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop", "ds_gws", "ds_ordered"};
  if (begins_with_any(m, no_memory)) return std::nullopt;
  const auto direction = m.starts_with("ds_read")    ? MemoryDirection::load
                         : m.starts_with("ds_write") ? MemoryDirection::store
                                                     : MemoryDirection::atomic;
  return MemoryOp{MemorySpace::lds, direction, lds_bytes(m), false};
}

std::optional<MemorySpace> vmem_space(Text m) {
  if (m.starts_with("global_")) return MemorySpace::global;
  if (m.starts_with("flat_")) return MemorySpace::flat;
  if (m.starts_with("scratch_")) return MemorySpace::scratch;
  if ((m.starts_with("buffer_") && !is_cache_control(m)) || m.starts_with("tbuffer_")) return MemorySpace::buffer;
  return std::nullopt;
}

} // namespace

std::string_view base_mnemonic(std::string_view mnemonic) {
  constexpr Text last = "24pa"; // of the suffixes; most names end otherwise
  if (mnemonic.empty() || last.find(mnemonic.back()) == Text::npos) return mnemonic;
  for (const Text suffix : {Text("_e32"), Text("_dpp"), Text("_sdwa"), Text("_e64")}) // "_e64_dpp" loses both
    if (mnemonic.ends_with(suffix)) mnemonic.remove_suffix(suffix.size());
  return mnemonic;
}

InstructionClass class_of_mnemonic(Text m) {
  if (m.starts_with("s_")) return classify_scalar(m);
  if (m.starts_with("v_")) return classify_vector(base_mnemonic(m));
  if (m.starts_with("ds_")) return m.starts_with("ds_gws") ? InstructionClass::other : InstructionClass::lds;
  if (!vmem_space(m)) return InstructionClass::other;
  if (contains(m, "_atomic_")) return InstructionClass::vmem_atomic;
  return contains(m, "_store_") ? InstructionClass::vmem_store : InstructionClass::vmem_load;
}

std::optional<MemoryOp> memory_op_of_text(Text m, Text text) {
  if (m.starts_with("ds_")) return lds_op(m);
  if (m.starts_with("s_")) {
    const bool store = m.starts_with("s_store_") || m.starts_with("s_buffer_store_") || m.starts_with("s_scratch_store_");
    const bool load = m.starts_with("s_load_") || m.starts_with("s_buffer_load_") || m.starts_with("s_scratch_load_");
    if (!store && !load) return std::nullopt;
    return MemoryOp{MemorySpace::scalar, store ? MemoryDirection::store : MemoryDirection::load, scalar_bytes(m), false};
  }
  const auto space = vmem_space(m);
  if (!space) return std::nullopt;
  if (contains(m, "_atomic_")) return MemoryOp{*space, MemoryDirection::atomic, m.ends_with("_x2") || m.ends_with("_f64") ? 8 : 4, false};
  // buffer loads to LDS carry a flag, global ones have a name of their own.
  const bool to_lds = contains(m, "_lds_") || (*space == MemorySpace::buffer && text.ends_with(" lds"));
  return MemoryOp{*space, contains(m, "_store_") ? MemoryDirection::store : MemoryDirection::load, vmem_bytes(m), to_lds};
}

std::optional<WaitCounts> wait_counts(const Instruction& instruction) {
  if (!instruction.valid || instruction.mnemonic != "s_waitcnt") return std::nullopt;
  std::uint16_t operand;
  std::memcpy(&operand, instruction.bytes.data(), sizeof operand);
  const auto [vmcnt, expcnt, lgkmcnt] = wait_fields(operand);
  WaitCounts counts;
  if (vmcnt != max_vmcnt) counts.vmcnt = vmcnt;
  if (expcnt != max_expcnt) counts.expcnt = expcnt;
  if (lgkmcnt != max_lgkmcnt) counts.lgkmcnt = lgkmcnt;
  return counts;
}

int nop_states(const Instruction& instruction) { return instruction.mnemonic == "s_nop" ? (instruction.bytes[0] & 15) + 1 : 0; }

std::string_view to_string(InstructionClass c) {
  static constexpr Text names[] = {
#define KILN_INSTRUCTION_CLASS(name, counted, action) #name,
#include "isa_checks/decode/instruction_classes.def"
  };
  return names[static_cast<std::size_t>(c)];
}

std::string_view to_string(MemorySpace space) {
  static constexpr std::array<Text, 6> names{"global", "flat", "scratch", "buffer", "lds", "scalar"};
  return names[static_cast<std::size_t>(space)];
}

std::string_view to_string(MemoryDirection direction) {
  static constexpr std::array<Text, 3> names{"load", "store", "atomic"};
  return names[static_cast<std::size_t>(direction)];
}

} // namespace kiln::isa
