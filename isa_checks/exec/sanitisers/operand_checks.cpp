// Register ranges of every instruction, and the check that loads have been waited for.
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

struct Collector {
  Inst& inst;
  std::size_t vectors = 0, scalars = 0;
  void vector(std::uint16_t reg, int count) {
    if (count > 0 && vectors < inst.vector_reads.size()) inst.vector_reads[vectors++] = {reg, static_cast<std::uint8_t>(count)};
  }
  void scalar(std::uint16_t reg, int count) {
    if (reg < code::scalar_registers && scalars < inst.scalar_reads.size())
      inst.scalar_reads[scalars++] = {reg, static_cast<std::uint8_t>(count)};
  }
};

void memory_ranges(Inst& inst, const LaneAccess& op) {
  Collector collected{inst};
  const Fields& f = inst.fields;
  const int words = std::max(op.bytes / 4, 1);
  const bool exchange = op.atomic == Atomic::cmpswap;
  if (f.format == Format::flat) {
    const bool has_saddr = f.saddr != 0x7f && f.segment != 0;
    if (f.segment == 1) {
      if (f.offen) collected.vector(inst.src[0].reg, 1);
      if (has_saddr) collected.scalar(f.saddr, 1);
    } else {
      collected.vector(inst.src[0].reg, has_saddr ? 1 : 2);
      if (has_saddr) collected.scalar(f.saddr, 2);
    }
    if (op.store || op.atomic != Atomic::none) collected.vector(inst.src[1].reg, exchange ? 2 * words : words);
    const bool returns = op.atomic != Atomic::none ? f.sc0 : !op.store && !op.to_lds;
    if (returns) inst.vector_writes[0] = {inst.dst.reg, static_cast<std::uint8_t>(words)};
    if (returns && op.half != 0) collected.vector(inst.dst.reg, 1);
    return;
  }
  if (f.format == Format::mubuf) {
    if (f.offen || f.idxen) collected.vector(inst.src[0].reg, f.offen && f.idxen ? 2 : 1);
    collected.scalar(f.saddr, 4);
    collected.scalar(f.soffset, 1);
    const bool returns = op.atomic != Atomic::none ? f.sc0 : !op.store && !f.lds;
    if (op.store || op.atomic != Atomic::none) collected.vector(inst.src[1].reg, exchange ? 2 * words : words);
    if (returns) inst.vector_writes[0] = {inst.dst.reg, static_cast<std::uint8_t>(words)};
    if (returns && op.half != 0) collected.vector(inst.dst.reg, 1);
    return;
  }
  const std::string_view name = inst.op->name;
  const bool by_m0 = name.find("addtid") != name.npos || name == "ds_append" || name == "ds_consume"; // no address register
  by_m0 ? collected.scalar(code::m0, 1) : collected.vector(inst.src[0].reg, 1);
  const bool two = op.pair_stride != 0, permutes = name == "ds_bpermute_b32" || name == "ds_permute_b32";
  if (op.store || (op.atomic != Atomic::none && !by_m0) || permutes) collected.vector(inst.src[1].reg, words);
  if ((two && (op.store || op.atomic != Atomic::none)) || takes_two(op.atomic)) collected.vector(inst.src[2].reg, words);
  const bool returns = op.atomic != Atomic::none ? op.returns : !op.store && name != "ds_nop";
  if (returns) inst.vector_writes[0] = {inst.dst.reg, static_cast<std::uint8_t>(two ? 2 * words : words)};
  inst.pure = permutes || name == "ds_swizzle_b32";
}

// Whether some of the destination's old bytes survive in the lanes that are written.
bool keeps_destination(const Inst& inst) {
  const Signature& s = inst.op->signature;
  const Sdwa& sdwa = inst.fields.sdwa;
  return s.keeps_half || inst.dst_high || (sdwa.present && sdwa.dst_sel != 6 && sdwa.dst_unused == 2) ||
         inst.op->name == "v_writelane_b32" || s.keeps_rest;
}

void report(Wave& wave, const Inst& inst, const char* what, const std::string& which, RegisterSpan vector, RegisterSpan scalar) {
  exec::report(wave, inst, DefectKind::unwaited_register, -1, [&] {
    return fmt::format("{} {} while the load at {:#x} that fills it is in flight", what, which, wave.in_flight->filler(vector, scalar));
  });
}

std::string vector_name(RegisterSpan r) {
  const char letter = r.first < first_accumulator ? 'v' : 'a';
  const int first = r.first % first_accumulator;
  return r.count == 1 ? fmt::format("{}{}", letter, first) : fmt::format("{}[{}:{}]", letter, first, first + r.count - 1);
}
std::string scalar_name(RegisterSpan r) {
  return r.count == 1 ? fmt::format("s{}", r.first) : fmt::format("s[{}:{}]", r.first, r.first + r.count - 1);
}

} // namespace

void set_ranges(Inst& inst) {
  const Signature& s = inst.op->signature;
  Collector collected{inst};
  if (inst.fields.format == Format::smem) {
    if (inst.op->memory != nullptr) {
      const auto words = static_cast<std::uint8_t>(inst.op->memory->bytes / 4);
      if (inst.op->memory->store) collected.scalar(inst.fields.dst, words);
      else inst.scalar_write = {inst.fields.dst, words};
    }
    if (inst.op->name.starts_with("s_mem")) return;
    collected.scalar(inst.fields.saddr, inst.op->name.starts_with("s_buffer") ? 4 : 2);
    if (inst.fields.soe || !inst.fields.imm) collected.scalar(inst.fields.soffset, 1);
    return;
  }
  if (inst.op->memory != nullptr) {
    memory_ranges(inst, *inst.op->memory);
    return;
  }
  if (inst.fields.format == Format::mubuf) return; // buffer_inv, buffer_wbl2: their register fields mean nothing
  if (const MatrixLayout* shape = inst.op->matrix) {
    for (int k = 0; k < 2; ++k)
      collected.vector(inst.src[static_cast<std::size_t>(k)].reg, matrix_source_registers(*shape, inst.fields, k));
    for (const InstOperand& scale : {inst.src[3], inst.src[4]}) {
      if (scale.kind == InstOperand::vector) collected.vector(scale.reg, 1);
      if (scale.kind == InstOperand::scalar) collected.scalar(scale.reg, 1);
    }
    if (inst.src[2].kind == InstOperand::vector) collected.vector(inst.src[2].reg, shape->sparse ? 1 : shape->result_registers());
    if (shape->sparse) collected.vector(inst.dst.reg, shape->result_registers());
    inst.vector_writes[0] = {inst.dst.reg, static_cast<std::uint8_t>(shape->result_registers())};
  }
  for (std::size_t k = 0; k < s.source_count; ++k) {
    const InstOperand& o = inst.src[k];
    if (inst.fields.format == Format::sopk && k == 0 && inst.op->name == "s_movk_i32") continue;
    if (o.kind == InstOperand::vector) collected.vector(o.reg, registers(o.type));
    if (o.kind == InstOperand::scalar) collected.scalar(o.reg, registers(o.type));
  }
  if (inst.dst.kind == InstOperand::vector && inst.op->matrix == nullptr) {
    inst.vector_writes[0] = {inst.dst.reg, static_cast<std::uint8_t>(registers(inst.dst.type))};
    if (keeps_destination(inst)) collected.vector(inst.dst.reg, 1);
  }
  const std::string_view name = inst.op->name;
  if (name.starts_with("v_permlane") || name == "v_swap_b32") {
    collected.vector(inst.dst.reg, 1);
    inst.vector_writes[1] = {inst.src[0].reg, 1};
  }
  inst.ignores_exec = name == "v_readlane_b32" || name == "v_writelane_b32" || inst.cls == InstClass::matrix;
  const InstClass cls = inst.cls;
  inst.pure = cls == InstClass::valu || cls == InstClass::trans || cls == InstClass::salu || cls == InstClass::matrix;
  if (inst.dst.kind == InstOperand::scalar && inst.dst.reg < code::scalar_registers)
    inst.scalar_write = {inst.dst.reg, static_cast<std::uint8_t>(registers(inst.dst.type))};
  if (s.carry_out || s.result == Type::mask) inst.scalar_write = {inst.sdst, 2};
}

void check_waits(Wave& wave, const Inst& inst) {
  const InFlight& in_flight = *wave.in_flight;
  if (!in_flight.any()) return;
  const bool partial_load = inst.op->memory != nullptr && inst.op->memory->half != 0; // the halves of a register arrive in order
  for (const RegisterSpan& r : inst.vector_reads)
    if (r.count != 0 && in_flight.vector_pending(r) && !(partial_load && r.first == inst.dst.reg))
      report(wave, inst, "reads", vector_name(r), r, {});
  for (const RegisterSpan& r : inst.scalar_reads)
    if (r.count != 0 && in_flight.scalar_pending(r)) report(wave, inst, "reads", scalar_name(r), {}, r);
  // A load into a register that an earlier load of the same counter fills returns after it, in order.
  const bool load = inst.op->memory != nullptr;
  for (const RegisterSpan& r : inst.vector_writes)
    if (!load && r.count != 0 && in_flight.vector_pending(r)) report(wave, inst, "overwrites", vector_name(r), r, {});
  if (const RegisterSpan r = inst.scalar_write; r.count != 0 && in_flight.scalar_pending(r))
    report(wave, inst, "overwrites", scalar_name(r), {}, r);
}

} // namespace kiln::exec
