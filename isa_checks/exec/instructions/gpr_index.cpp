// Registers counted from M0.
//
// VGPR index mode: MODE bit 27 turns it on; M0[7:0] is added to the register numbers of those operands whose bit in M0[15:12] is
// set (sources 0, 1, 2, destination). Lane reads and writes, memory and matrix instructions are not indexed. s_movrels and s_movreld
// add M0 to the number of their scalar source or destination.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/sanitisers/definedness.h"
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

namespace kiln::exec {
namespace {

constexpr u32 mode_bit = 1U << 27, index_bits = 0xffU, operand_bits = 0xf000U;

void set_index(Wave& wave, u32 bits, u32 value) {
  u32& m0 = wave.s[code::m0];
  m0 = (m0 & ~bits) | (value & bits);
  if (wave.shadow != nullptr) wave.shadow->scalar[code::m0] &= ~bits;
}
void turn_on(Wave& wave, const Inst& inst) {
  wave.mode |= mode_bit;
  const u32 index = static_cast<u32>(read_scalar(wave, inst.src[0]));
  set_index(wave, index_bits | operand_bits, (index & index_bits) | (inst.fields.src[1] & 0xfU) << 12);
}
void turn_off(Wave& wave, const Inst&) { wave.mode &= ~mode_bit; }
void change_index(Wave& wave, const Inst& inst) { set_index(wave, index_bits, static_cast<u32>(read_scalar(wave, inst.src[0]))); }
void change_operands(Wave& wave, const Inst& inst) { set_index(wave, operand_bits, static_cast<u32>(inst.fields.simm16 & 0xfU) << 12); }

// Runs `actual` under the same checks as any other instruction.
void run_checked(Wave& wave, Inst& actual) {
  actual.pure = true;
  if (wave.in_flight != nullptr) check_waits(wave, actual);
  if (wave.shadow != nullptr) run_tracked(wave, actual);
  else actual.handler(wave, actual);
}

// Moves the first of the ranges that begins at a register.
void move_range(std::span<isa::RegisterRange> ranges, int first, u32 by) {
  const auto range = std::ranges::find(ranges, first, &isa::RegisterRange::first);
  if (range != ranges.end()) range->first = static_cast<std::uint16_t>(range->first + by);
}

constexpr std::uint32_t scalar_registers = 102;
template <bool wide, bool source> void move_relative(Wave& wave, const Inst& inst) {
  Inst actual = inst;
  InstOperand& moved = source ? actual.src[0] : actual.dst;
  const u32 reg = moved.reg + wave.s[code::m0];
  if (moved.kind != InstOperand::scalar || reg + (wide ? 2U : 1U) > scalar_registers || (wide && reg % 2 != 0))
    throw Stop(
        fmt::format("s{} plus M0 {:#x} is no {}", moved.reg, wave.s[code::m0], wide ? "pair of scalar registers" : "scalar register"));
  actual.use = inst.encoded;
  if (source) move_range(actual.use.read_list, isa::reg::sgpr + moved.reg, wave.s[code::m0]);
  else move_range(actual.use.write_list, isa::reg::sgpr + moved.reg, wave.s[code::m0]);
  moved.reg = static_cast<std::uint16_t>(reg);
  actual.op = find_semantics(wide ? "s_mov_b64" : "s_mov_b32", false, false);
  actual.handler = actual.op->handler;
  run_checked(wave, actual);
}
constexpr Semantics table[] = {
    entry("s_set_gpr_idx_on", turn_on, Type::none, {Type::u32}),
    entry("s_set_gpr_idx_off", turn_off),
    entry("s_set_gpr_idx_idx", change_index, Type::none, {Type::u32}),
    entry("s_set_gpr_idx_mode", change_operands),
    entry("s_movrels_b32", move_relative<false, true>, Type::u32, {Type::u32}),
    entry("s_movrels_b64", move_relative<true, true>, Type::u64, {Type::u64}),
    entry("s_movreld_b32", move_relative<false, false>, Type::u32, {Type::u32}),
    entry("s_movreld_b64", move_relative<true, false>, Type::u64, {Type::u64}),
};

void move(const Wave& wave, InstOperand& o, std::span<isa::RegisterRange> ranges, u32 by) {
  if (o.kind != InstOperand::vector || o.reg >= first_accumulator) return;
  if (o.reg + by + static_cast<u32>(registers(o.type)) > wave.arch_count)
    throw Stop(fmt::format("indexed register v{} is beyond the {} that there are", o.reg + by, wave.arch_count));
  move_range(ranges, o.reg, by);
  o.reg = static_cast<std::uint16_t>(o.reg + by);
}

// Runs the instruction with the registers that M0 makes of its operands, under the same checks as any other.
void run_indexed(Wave& wave, const Inst& inst) {
  Inst actual = inst;
  actual.handler = inst.op->handler;
  actual.use = inst.encoded;
  if ((wave.mode & mode_bit) != 0) {
    const u32 m0 = wave.s[code::m0], by = m0 & index_bits, which = m0 >> 12 & 0xfU;
    const bool accumulates = inst.op->signature.accumulates; // the last source is the destination
    for (u32 k = 0; k < inst.source_count && k < 3; ++k)
      if ((which >> (accumulates && k + 1U == inst.source_count ? 3 : k) & 1U) != 0) move(wave, actual.src[k], actual.use.read_list, by);
    if ((which & 8U) != 0) move(wave, actual.dst, actual.use.write_list, by);
  }
  run_checked(wave, actual);
}

void forget_use(Inst& i) {
  i.encoded = std::exchange(i.use, {});
  i.pure = false;
}

} // namespace

void prepare_index_mode(std::vector<Inst>& program) {
  for (Inst& i : program)
    if (i.op->name.starts_with("s_movrel")) forget_use(i);
  const auto turns_on = [](const Inst& i) { return i.op->name == "s_set_gpr_idx_on"; };
  if (std::none_of(program.begin(), program.end(), turns_on)) return;
  for (Inst& i : program) {
    const std::string_view name = i.op->name;
    if (i.cls != InstClass::valu && i.cls != InstClass::trans) continue;
    if (name == "v_readlane_b32" || name == "v_writelane_b32" || name == "v_readfirstlane_b32") continue;
    i.handler = &run_indexed;
    forget_use(i);
  }
}

SemanticsTable gpr_index_table() { return table; }

} // namespace kiln::exec
