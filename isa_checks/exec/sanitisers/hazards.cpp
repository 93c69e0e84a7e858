// The traits of instructions, and the check along the path of a wave.
#include "isa_checks/exec/sanitisers/hazards.h"
#include "isa_checks/exec/machine/findings.h"
#include "isa_checks/exec/machine/matrix.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

constexpr int longest_wait = 20; // after a 16-pass matrix instruction on gfx950

// LLVM's SISchedule.td and AMD's matrix instruction calculator: a pass is 4 cycles.
int matrix_passes(const Inst& inst, const isa::TargetFacts& target) {
  const MatrixShape& s = *inst.op->matrix;
  const std::string_view name = inst.op->name;
  if (s.a == Element::f64) return s.m == 4 ? 4 : target.generation == isa::Generation::cdna4 ? 16 : 8;
  if (s.m == 4) return 2;
  const bool large = s.m == 32;
  if (name.find("f8f6f4") != name.npos) { // full rate only when neither A nor B is an 8-bit format
    const bool bytes = inst.fields.cbsz < 2 || inst.fields.blgp < 2;
    return (large ? 8 : 4) * (bytes ? 2 : 1);
  }
  const bool slow = s.blocks > 1 || (s.a == Element::f32 && name.find("xf32") == name.npos);
  return (large ? 8 : 4) * (slow ? 2 : 1);
}

bool is_partial(const Inst& inst) {
  const std::string_view name = inst.op->name;
  if (inst.fields.sdwa.present) return inst.fields.sdwa.dst_sel != 6 && inst.dst.kind == Operand::vector;
  if (name.starts_with("v_cvt_scalef32_pk_fp4_") || name.starts_with("v_cvt_scalef32_sr_pk_fp4_")) return true;
  if (inst.fields.format != Format::vop3 || inst.dst.kind != Operand::vector || inst.op->signature.carry_out) return false;
  const bool chooses_byte = name.starts_with("v_cvt_sr_fp8") || name.starts_with("v_cvt_sr_bf8"); // op_sel[3:2] is the byte
  return (inst.fields.op_sel & (chooses_byte ? 0xcU : 0x8U)) != 0;
}

// Stores whose data the memory pipeline reads late: more than 64 bits, and for buffers no scalar register as offset.
bool is_wide_store(const Inst& inst) {
  const MemoryOp& op = *inst.op->memory;
  if (!op.store && op.atomic == Atomic::none) return false;
  const int bytes = op.atomic == Atomic::cmpswap ? 2 * op.bytes : op.bytes;
  if (inst.fields.format == Format::mubuf) return bytes > 8 && inst.fields.soffset >= 128;
  return inst.fields.format == Format::flat && bytes > 8;
}

void valu_traits(const Inst& inst, HazardTraits& t) {
  const std::string_view name = inst.op->name;
  t.consumes = hazard_partial | hazard_dot | hazard_store | hazard_matrix;
  if (inst.op->cls != InstClass::trans) t.consumes |= hazard_trans;
  const bool lanes = name == "v_readlane_b32" || name == "v_readfirstlane_b32" || name == "v_writelane_b32";
  if (inst.scalar_reads[0].count != 0 || inst.fields.dpp.present || lanes || name.starts_with("v_div_fmas") ||
      name.starts_with("v_permlane"))
    t.consumes |= hazard_scalar;
  if (inst.fields.dpp.present || lanes || name.starts_with("v_permlane")) t.consumes |= hazard_vector;
  if (inst.op->cls == InstClass::trans) t.produces |= hazard_trans;
  if (is_partial(inst)) t.produces |= hazard_partial;
  if (inst.scalar_write.count != 0 || inst.writes_exec) t.produces |= hazard_scalar;
  if (inst.vector_writes[0].count != 0) t.produces |= name.starts_with("v_dot") ? hazard_dot | hazard_vector : hazard_vector;
}

Range intersection(Range a, Range b) {
  const int first = std::max(a.first, b.first), end = std::min(a.first + a.count, b.first + b.count);
  return {static_cast<std::uint16_t>(first), static_cast<std::uint8_t>(std::max(end - first, 0))};
}

// Whether all that `inst` has in common with the result of a matrix instruction was overwritten by matrix instructions since:
// compilers let results overlap where a part of one is not used.
bool overwritten(const Inst& first, const Inst& inst, std::span<const Inst* const> since) {
  const auto hidden = [&](Range r) {
    const Range common = intersection(r, first.vector_writes[0]);
    return common.count == 0 || std::any_of(since.begin(), since.end(), [&](const Inst* newer) {
             return intersection(common, newer->vector_writes[0]).count == common.count;
           });
  };
  return !since.empty() && std::all_of(inst.vector_reads.begin(), inst.vector_reads.end(), hidden) &&
         std::all_of(inst.vector_writes.begin(), inst.vector_writes.end(), hidden);
}

} // namespace

std::vector<HazardTraits> hazard_traits(std::span<const Inst> program, const isa::TargetFacts& target) {
  std::vector<HazardTraits> all(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Inst& inst = program[i];
    HazardTraits& t = all[i];
    const std::string_view name = inst.op->name;
    if (inst.op->matrix != nullptr) {
      t = {.produces = hazard_matrix,
           .consumes = hazard_matrix | hazard_vector | hazard_scalar | hazard_partial | hazard_trans | hazard_store,
           .passes = static_cast<std::uint8_t>(matrix_passes(inst, target))};
    } else if (inst.op->cls == InstClass::valu || inst.op->cls == InstClass::trans) {
      valu_traits(inst, t);
    } else if (inst.op->cls == InstClass::vmem || inst.op->cls == InstClass::lds) {
      t.consumes = hazard_matrix | hazard_dot;
      if (inst.op->cls == InstClass::vmem) t.consumes |= hazard_scalar | hazard_m0;
      if (inst.op->memory != nullptr && is_wide_store(inst)) t.produces |= hazard_store;
    } else if (name.starts_with("s_setreg")) {
      t = {.produces = hazard_setreg, .consumes = hazard_setreg};
    } else if (name == "s_getreg_b32") {
      t.consumes = hazard_setreg;
    } else if (inst.op->cls == InstClass::salu && inst.scalar_write.count != 0 && inst.scalar_write.first == code::m0) {
      t.produces = hazard_m0;
    } else if (name == "s_nop") {
      t.states = static_cast<std::uint8_t>((inst.fields.simm16 & 0xfU) + 1);
    } else if (name.starts_with("s_sendmsg")) {
      t.consumes = hazard_m0;
    }
  }
  return all;
}

void HazardWindow::check(Wave& wave, const Inst& inst, const HazardTraits& traits, const isa::TargetFacts& target) {
  recent_ = 0;
  std::array<const Inst*, 32> newer; // matrix instructions
  std::size_t newer_count = 0;
  for (std::size_t k = 0; k < ring_.size(); ++k) {
    const Issued& first = ring_[(newest_ + ring_.size() - k) % ring_.size()];
    if (first.inst == nullptr) break;
    const auto between = static_cast<std::int64_t>(clock_ - first.clock) - 1;
    if (between >= longest_wait) break;
    recent_ |= first.traits->produces;
    if ((first.traits->produces & traits.consumes) == 0) continue;
    if ((first.traits->produces & hazard_matrix) != 0) {
      const bool hidden = overwritten(*first.inst, inst, std::span(newer.data(), newer_count));
      newer[newer_count++] = first.inst;
      if (hidden) continue;
    }
    const HazardNeed need = hazard_need(*first.inst, *first.traits, inst, traits, target);
    if (between >= need.states) continue;
    wave.findings->report(FindingKind::hazard, inst.address, [&] {
      Finding f{FindingKind::hazard,
                inst.address,
                inst.text,
                {},
                wave.index,
                -1,
                fmt::format("{} {} wait states after `{}` at {:#x}, the hardware needs {}", need.why, between, first.inst->text,
                            first.inst->address, need.states)};
      std::memcpy(f.workgroup, wave.group->id, sizeof f.workgroup);
      return f;
    });
  }
}

} // namespace kiln::exec
