// Pre-decoding: from fields and a table entry to an Inst with its operands, modifiers and register ranges.
#include "isa_checks/exec/run/program.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/hazard_traits.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/exec/numbers/numeric.h"
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace kiln::exec {
namespace {

bool is_half(Type t) { return t == Type::u16 || t == Type::i16 || t == Type::f16 || t == Type::bf16; }
bool is_packed(Type t) { return t == Type::u16x2 || t == Type::i16x2 || t == Type::f16x2 || t == Type::u32x2 || t == Type::f32x2; }
bool is_memory(Format f) { return f == Format::flat || f == Format::ds || f == Format::mubuf || f == Format::mtbuf; }
bool is_scalar(Format f) { return f <= Format::smem; }

constexpr double inline_floats[] = {0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.15915494309189535};

// An inline constant as the operand's type reads it; 64-bit types take floats as doubles, 16-bit types as halves.
std::uint64_t inline_constant(std::uint16_t number, Type type) {
  if (number <= 192) return number - code::zero;
  if (number <= 208) return static_cast<std::uint64_t>(-static_cast<std::int64_t>(number - 192U));
  const double value = inline_floats[number - 240U];
  switch (type) {
  case Type::f16:
  case Type::u16:
  case Type::i16:
  case Type::f16x2: return to_half(static_cast<float>(value)).bits;
  case Type::bf16: return to_bfloat(static_cast<float>(value)).bits;
  case Type::u64:
  case Type::i64:
  case Type::f64: return as_bits(value);
  default: return as_bits(static_cast<float>(value));
  }
}

std::uint64_t literal_constant(std::uint32_t literal, Type type) {
  if (type == Type::f64) return static_cast<std::uint64_t>(literal) << 32;
  if (type == Type::i64) return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(literal)));
  return literal;
}

InstOperand make_operand(const Fields& f, std::uint16_t number, Type type, bool acc = false) {
  InstOperand o;
  o.type = type;
  if (number >= code::vgpr) {
    o.kind = InstOperand::vector;
    o.reg = static_cast<std::uint16_t>(number - code::vgpr + (acc ? first_accumulator : 0));
  } else if (number == code::literal) {
    o.kind = InstOperand::constant;
    o.value = literal_constant(f.literal, type);
  } else if ((number >= 128 && number <= 208) || (number >= 240 && number <= 248)) {
    o.kind = InstOperand::constant;
    o.value = inline_constant(number, type);
  } else {
    o.kind = InstOperand::scalar;
    o.reg = number;
  }
  return o;
}

void apply_modifiers(InstOperand& o, const Inst& inst, int k) {
  const Fields& f = inst.fields;
  const Signature& s = inst.op->signature;
  const auto bit = [k](std::uint8_t bits) { return (bits >> k & 1U) != 0; };
  if (o.type == Type::mask || k > 2) return;
  if (s.own_modifiers) {
    o.take_high = bit(f.op_sel) && is_half(o.type);
    o.plain = !o.take_high;
    return;
  }
  if (f.format == Format::vop3p) {
    o.neg = bit(f.neg);
    o.neg_hi = bit(f.abs);
    o.take_high = bit(f.op_sel) && (is_packed(o.type) || o.type == Type::mixed || is_half(o.type));
    o.high_takes_high = bit(f.op_sel_hi);
    o.plain = o.type == Type::mixed ? !o.neg && !o.neg_hi && !o.high_takes_high
                                    : !o.neg && !o.neg_hi && !o.take_high && (o.high_takes_high || !is_packed(o.type));
    return;
  }
  o.neg = bit(f.neg);
  o.abs = bit(f.abs) && !s.carry_out;
  o.take_high = f.format == Format::vop3 && !s.carry_out && bit(f.op_sel) && is_half(o.type);
  if (f.sdwa.present && k < 2) {
    o.select = f.sdwa.src_sel[k];
    o.sext = f.sdwa.sext[k];
    o.sdwa = o.select != 6;
  }
  o.dpp = f.dpp.present && k == 0;
  o.plain = !o.neg && !o.abs && !o.take_high && !o.sdwa && !o.dpp;
}

// The lane that each lane reads under a DPP control, -1 for none.
int dpp_lane(std::uint16_t control, int lane) {
  const int row = lane & ~15, in_row = lane & 15, n = control & 15;
  const auto within = [row](int i) { return i >= 0 && i < 16 ? row + i : -1; };
  if (control < 0x100) return (lane & ~3) + (control >> (2 * (lane & 3)) & 3);
  if (control < 0x110) return within(in_row + n);
  if (control < 0x120) return within(in_row - n);
  if (control < 0x130) return row + ((in_row - n) & 15);
  switch (control) {
  case 0x130: return lane + 1 < lane_count ? lane + 1 : -1;
  case 0x134: return (lane + 1) % lane_count;
  case 0x138: return lane - 1;
  case 0x13c: return (lane + lane_count - 1) % lane_count;
  case 0x140: return row + 15 - in_row;
  case 0x141: return (lane & ~7) + 7 - (lane & 7);
  case 0x142: return row - 1;
  case 0x143: return lane >= 32 ? 31 : -1;
  default: return control >= 0x150 && control < 0x160 ? row + n : -1;
  }
}

void prepare_dpp(Inst& inst) {
  const Dpp& dpp = inst.fields.dpp;
  if (!dpp.present) return;
  inst.dpp_source.resize(lane_count);
  inst.dpp_lanes = 0;
  for (int i = 0; i < lane_count; ++i) {
    inst.dpp_source[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(dpp_lane(dpp.control, i));
    const bool on = (dpp.row_mask >> (i / 16) & 1) != 0 && (dpp.bank_mask >> (i % 16 / 4) & 1) != 0;
    if (on) inst.dpp_lanes |= 1ULL << i;
  }
}

void scalar_operands(Inst& inst) {
  const Fields& f = inst.fields;
  const Signature& s = inst.op->signature;
  inst.dst = {.kind = InstOperand::scalar, .type = s.result, .reg = f.dst};
  if (f.format == Format::sopk) {
    const bool zero_extended = inst.op->name.ends_with("_u32");
    const auto k = static_cast<std::int16_t>(f.simm16);
    inst.src[0] = {.kind = InstOperand::scalar, .type = Type::u32, .reg = f.dst};
    inst.src[1] = {.kind = InstOperand::constant,
                   .type = Type::u32,
                   .value = zero_extended ? f.simm16 : static_cast<std::uint64_t>(static_cast<std::int64_t>(k))};
    return;
  }
  for (std::size_t k = 0; k < s.source_count; ++k) {
    const bool kept = s.accumulates && k + 1U == s.source_count; // what the destination held
    inst.src[k] = kept ? InstOperand{.kind = InstOperand::scalar, .type = s.source[k], .reg = f.dst}
                       : make_operand(f, f.src[k < 2 ? k : 1], s.source[k]);
  }
}

void vector_operands(Inst& inst) {
  const Fields& f = inst.fields;
  const Signature& s = inst.op->signature;
  const std::string_view name = inst.op->name;
  const bool acc_source = name == "v_accvgpr_read_b32" || name == "v_accvgpr_mov_b32";
  const bool acc_result = name == "v_accvgpr_write_b32" || name == "v_accvgpr_mov_b32";
  prepare_dpp(inst);
  inst.dst = {.kind = s.scalar_result ? InstOperand::scalar : InstOperand::vector,
              .type = s.result,
              .reg = static_cast<std::uint16_t>(f.dst + (acc_result ? first_accumulator : 0))};
  if (s.result == Type::mask) inst.dst = {};
  const bool vop3 = f.format == Format::vop3;
  inst.sdst = s.result == Type::mask && vop3 ? f.dst : vop3 || f.sdwa.present ? f.sdst : code::vcc;
  if (!s.carry_out && s.result != Type::mask) inst.sdst = code::vcc;
  if (s.carry_out && !vop3) inst.sdst = code::vcc;
  for (int k = 0; k < s.source_count; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const Type type = s.source[at];
    if (s.accumulates && k == s.source_count - 1) inst.src[at] = {.kind = InstOperand::vector, .type = type, .reg = f.dst};
    else if (type == Type::mask) inst.src[at] = {.kind = InstOperand::scalar, .type = type, .reg = vop3 && k < 3 ? f.src[k] : code::vcc};
    else inst.src[at] = make_operand(f, f.src[k], type, acc_source);
    if (!(s.accumulates && k == s.source_count - 1)) apply_modifiers(inst.src[at], inst, k);
  }
  inst.clamp = f.clamp && s.result != Type::mask;
  inst.omod = s.own_modifiers ? std::uint8_t{0} : f.omod;
  inst.dst_high = name == "v_fma_mixhi_f16" || (vop3 && !s.carry_out && (f.op_sel & 8U) != 0 && is_half(s.result));
  inst.writes_exec = name.starts_with("v_cmpx");
  inst.simple_result = !inst.clamp && inst.omod == 0 && !inst.dst_high && !s.keeps_half && !(f.sdwa.present && f.sdwa.dst_sel != 6);
}

// A and B by registers, C by registers or a constant; each may be architectural or accumulation registers.
void matrix_operands(Inst& inst) {
  const Fields& f = inst.fields;
  const Element accumulator = inst.op->matrix->accumulator;
  const Type type = accumulator == Element::f64 ? Type::f64 : accumulator == Element::i8 ? Type::u32 : Type::f32;
  for (int k = 0; k < 2; ++k) inst.src[static_cast<std::size_t>(k)] = make_operand(f, f.src[k], type, (f.acc_src >> k & 1) != 0);
  inst.src[2] =
      make_operand(f, f.src[2], type, f.acc_cd && !inst.op->matrix->sparse); // the indices of A are never in accumulation registers
  inst.dst = {.kind = InstOperand::vector, .type = type, .reg = static_cast<std::uint16_t>(f.dst + (f.acc_cd ? first_accumulator : 0))};
  if (!has_scales(f)) return;
  inst.src[3] = make_operand(f, f.prefix[1] & 0x1ffU, Type::u32);
  inst.src[4] = make_operand(f, f.prefix[1] >> 9 & 0x1ffU, Type::u32);
}

std::uint16_t data_register(const Fields& f, std::uint16_t reg) {
  return static_cast<std::uint16_t>(reg + (f.acc ? first_accumulator : 0));
}

void memory_operands(Inst& inst) {
  const Fields& f = inst.fields;
  inst.src[0] = {.kind = InstOperand::vector, .type = Type::u32, .reg = f.src[0]};
  inst.src[1] = {.kind = InstOperand::vector, .type = Type::u32, .reg = data_register(f, f.src[1])};
  inst.src[2] = {.kind = InstOperand::vector, .type = Type::u32, .reg = data_register(f, f.src[2])};
  inst.dst = {.kind = InstOperand::vector, .type = Type::u32, .reg = data_register(f, f.dst)};
}

// The classes of instructions, as the executor tells them apart. It counts the end of a program as a branch, and sleeping as wait states.
InstClass class_of(const isa::Instruction& from) {
  static constexpr InstClass counted[] = {
#define KILN_INSTRUCTION_CLASS(name, counted, action) InstClass::counted,
#include "isa_checks/decode/instruction_classes.def"
  };
  const std::string_view m = from.mnemonic;
  if (m.starts_with("s_set_gpr_idx") || m.starts_with("s_dcache")) return InstClass::other;
  if (m.starts_with("s_endpgm")) return InstClass::branch;
  return m == "s_sleep" ? InstClass::nop : counted[static_cast<std::size_t>(from.kind)];
}

Inst make_inst(const isa::Instruction& from, const isa::TargetFacts& target) {
  Inst inst;
  inst.address = from.address;
  inst.text = from.text;
  inst.counts = isa::counter_use(from);
  std::uint32_t words[4] = {};
  std::memcpy(words, from.bytes.data(), from.size);
  const std::string_view name = isa::base_mnemonic(from.mnemonic);
  inst.fields = decode_fields({words, from.size / 4}, name);
  const bool integer_clamp = inst.fields.clamp;
  inst.op = from.valid ? find_semantics(name, integer_clamp, target.fp8 == isa::Fp8Format::fnuz) : nullptr;
  if (inst.op == nullptr || inst.fields.format == Format::unknown) {
    inst.op = &not_modelled_semantics();
    inst.handler = inst.op->handler;
    return inst;
  }
  inst.handler = inst.op->handler;
  inst.cls = class_of(from);
  if (is_scalar(inst.fields.format)) scalar_operands(inst);
  else if (is_memory(inst.fields.format)) memory_operands(inst);
  else if (inst.op->matrix != nullptr) matrix_operands(inst);
  else vector_operands(inst);
  inst.source_count = inst.op->signature.source_count;
  set_use(inst, from.use);
  // Damaged code may name a scalar destination that does not exist; compilers and assemblers do not.
  const bool scalar_result = inst.dst.kind == InstOperand::scalar && inst.op->signature.result != Type::none;
  const bool mask_result = inst.op->signature.carry_out || inst.op->signature.result == Type::mask;
  if ((scalar_result && inst.dst.reg >= code::scalar_registers) || (mask_result && inst.sdst >= code::scalar_registers)) {
    inst.op = &not_modelled_semantics();
    inst.handler = inst.op->handler;
    inst.cls = InstClass::other;
  }
  return inst;
}

} // namespace

std::uint32_t ExecProgram::index_of(std::uint64_t address) const {
  const std::uint64_t word = (address - first_address) / 4;
  return address < first_address || word >= index_of_word.size() ? ~0U : index_of_word[word];
}

ExecProgram predecode(const isa::CodeObject& object, const isa::Kernel& kernel) {
  ExecProgram program;
  program.target = &object.target();
  program.first_address = kernel.entry;
  isa::Disassembler disassembler(object.target());
  const std::vector<isa::Instruction> decoded = disassembler.decode(kernel);
  program.index_of_word.assign(kernel.code.size() / 4 + 1, ~0U);
  for (const isa::Instruction& i : decoded) {
    program.index_of_word[(i.address - kernel.entry) / 4] = static_cast<std::uint32_t>(program.instructions.size());
    program.instructions.push_back(make_inst(i, object.target()));
    const isa::Operands operands = isa::operands_of(i);
    program.hazards.push_back(isa::hazard_traits(i, operands, i.use, object.target()));
  }
  prepare_index_mode(program.instructions);
  for (std::size_t k = 0; k < decoded.size(); ++k) // in index mode registers are known only when the instruction runs
    if (program.instructions[k].handler != program.instructions[k].op->handler) program.hazards[k] = {};
  for (std::size_t k = 0; k < decoded.size(); ++k)
    if (decoded[k].branch_target) program.instructions[k].target = program.index_of(*decoded[k].branch_target);
  return program;
}

bool has_direct_loads(const ExecProgram& program) {
  return std::ranges::any_of(program.instructions,
                             [](const Inst& i) { return i.op->memory != nullptr && (i.op->memory->to_lds || i.fields.lds); });
}

} // namespace kiln::exec
