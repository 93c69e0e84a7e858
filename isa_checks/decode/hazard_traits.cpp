// From mnemonics, operands and encoded bits to hazard traits.
#include "isa_checks/decode/hazard_traits.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <cstring>

namespace kiln::isa {
namespace {

using Text = std::string_view;

std::uint32_t first_word(const Instruction& instruction) {
  std::uint32_t word = 0;
  std::memcpy(&word, instruction.bytes.data(), sizeof word);
  return word;
}

RegisterRange registers(const Operands& o, std::size_t at) {
  return at < o.count && o[at].is(Operand::Kind::registers) ? o[at].registers : RegisterRange{};
}

// Whether the result goes into a part of a register: SDWA's dst_sel, op_sel of the destination (bits 13 and 14 of VOP3, not of VOP3P), fp4.
bool is_partial(const Instruction& instruction, Text m, const Operands& o, const RegisterUse& use) {
  const auto writes = use.writes();
  if (writes.empty() || !std::all_of(writes.begin(), writes.end(), [](RegisterRange r) { return r.vector(); })) return false;
  if (o.modifiers.find("dst_sel:") != Text::npos) return o.modifiers.find("dst_sel:DWORD") == Text::npos;
  if (m.starts_with("v_cvt_scalef32_pk_fp4_") || m.starts_with("v_cvt_scalef32_sr_pk_fp4_")) return true;
  const std::uint32_t word = first_word(instruction);
  constexpr std::uint32_t vop3 = 0x34, vop3p = 0x1a7; // the formats' bits 26 to 31, and 23 to 31
  const bool chooses_byte = m.starts_with("v_cvt_sr_fp8") || m.starts_with("v_cvt_sr_bf8");
  return word >> 26 == vop3 && word >> 23 != vop3p && (word >> 11 & (chooses_byte ? 0xcU : 0x8U)) != 0;
}

// The data of a store whose registers the memory pipeline reads late: more than 64 bits per lane. Addresses have at most 64 bits.
RegisterRange late_store_data(const MemoryOp& op, const Operands& o) {
  if (op.direction == MemoryDirection::load) return {};
  for (std::size_t i = 0; i < o.count; ++i)
    if (const RegisterRange r = registers(o, i); r.vector() && r.count > 2) return r;
  return {};
}

void vector_alu(const Instruction& instruction, InstructionClass kind, Text m, const Operands& o, HazardTraits& t) {
  t.unit = HazardUnit::valu;
  t.div_fmas = m.starts_with("v_div_fmas_");
  t.fma_f64 = m == "v_fma_f64" || m == "v_fmac_f64";
  if (m == "v_readlane_b32") t.lanes = LaneUse::read;
  else if (m == "v_readfirstlane_b32") t.lanes = LaneUse::read_first;
  else if (m == "v_writelane_b32") t.lanes = LaneUse::write;
  else if (m.starts_with("v_permlane")) t.lanes = LaneUse::swap;
  else if (instruction.mnemonic.ends_with("_dpp")) t.lanes = LaneUse::dpp;
  if (t.lanes == LaneUse::read || t.lanes == LaneUse::read_first || t.lanes == LaneUse::dpp) t.permuted = registers(o, 1);
  if (t.lanes == LaneUse::read || t.lanes == LaneUse::write) t.lane_select = registers(o, 2);

  const auto reads = t.use.reads();
  const bool reads_scalar = std::any_of(reads.begin(), reads.end(), [](RegisterRange r) { return !r.vector(); });
  t.consumes = hazard_partial | hazard_dot | hazard_store | hazard_matrix;
  if (kind != InstructionClass::trans) t.consumes |= hazard_trans;
  if (t.lanes != LaneUse::none) t.consumes |= hazard_scalar | hazard_vector;
  if (reads_scalar || t.div_fmas) t.consumes |= hazard_scalar;

  if (kind == InstructionClass::trans) t.produces |= hazard_trans;
  if (is_partial(instruction, m, o, t.use)) t.produces |= hazard_partial;
  for (const RegisterRange r : t.use.writes()) t.produces |= r.vector() ? hazard_vector : hazard_scalar;
  if (kind == InstructionClass::dot) {
    t.produces |= hazard_dot;
    t.accumulator = registers(o, o.count > 3 ? 3 : 0);
  }
}

void matrix(const Instruction& instruction, const MatrixShape& shape, const Operands& o, HazardTraits& t) {
  t.unit = HazardUnit::matrix;
  t.produces = hazard_matrix;
  t.consumes = hazard_matrix | hazard_vector | hazard_scalar | hazard_partial | hazard_trans | hazard_store;
  t.passes = static_cast<std::uint8_t>(shape.passes);
  t.xdl = shape.xdl;
  t.f64 = shape.input == "f64";
  t.accumulator = registers(o, instruction.mnemonic.starts_with("v_smfmac_") ? 0 : 3);
}

void memory(const MemoryOp* op, InstructionClass kind, const Operands& o, HazardTraits& t) {
  t.unit = kind == InstructionClass::lds ? HazardUnit::lds : HazardUnit::vmem;
  t.consumes = hazard_matrix | hazard_dot;
  if (t.unit == HazardUnit::lds) return;
  t.consumes |= hazard_scalar;
  if (op && op->to_lds) t.consumes |= hazard_m0;
  if (op) t.store_data = late_store_data(*op, o);
  if (t.store_data.count == 0) return;
  t.produces = hazard_store;
  t.scalar_offset = op->space == MemorySpace::buffer && registers(o, 3).count != 0;
}

void scalar(const Instruction& instruction, InstructionClass kind, HazardTraits& t) {
  const Text m = instruction.mnemonic;
  if (m == "s_nop") t.states = static_cast<std::uint8_t>(nop_states(instruction));
  if (m.starts_with("s_sendmsg")) t.consumes = hazard_m0;
  if (m.starts_with("s_setreg") || m == "s_getreg_b32") {
    t.hardware_register = first_word(instruction) & 0x3fU;
    t.consumes = hazard_setreg;
    if (m != "s_getreg_b32") t.produces = hazard_setreg;
  } else if (kind == InstructionClass::salu && t.use.writes_any({reg::m0, 1})) {
    t.produces = hazard_m0;
  }
}

} // namespace

HazardTraits hazard_traits(const Instruction& instruction, const Operands& operands, const RegisterUse& use, const TargetFacts& target) {
  HazardTraits t;
  t.opcode = instruction.opcode;
  t.use = use;
  const InstructionClass kind = instruction.kind;
  switch (kind) {
  case InstructionClass::valu:
  case InstructionClass::trans:
  case InstructionClass::packed:
  case InstructionClass::dot: vector_alu(instruction, kind, base_mnemonic(instruction.mnemonic), operands, t); break;
  case InstructionClass::mfma:
    if (const auto shape = matrix_shape(instruction, operands, target); shape && use.write_count != 0)
      matrix(instruction, *shape, operands, t);
    break;
  case InstructionClass::vmem_load:
  case InstructionClass::vmem_store:
  case InstructionClass::vmem_atomic:
  case InstructionClass::lds: {
    const auto op = instruction.memory;
    memory(op ? &*op : nullptr, kind, operands, t);
    break;
  }
  default:
    if (instruction.mnemonic.starts_with("s_")) scalar(instruction, kind, t);
  }
  return t;
}

} // namespace kiln::isa
