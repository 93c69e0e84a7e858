// Branches, barriers, waits, mode and hardware registers.
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/measurements.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/machine/wave.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

void not_modelled(Wave&, const Inst& inst) {
  throw Stop(fmt::format("the executor does not model this instruction (encoding {} bytes)", inst.fields.size));
}
constexpr Semantics unknown{"not modelled", &not_modelled, {}};

void nothing(Wave&, const Inst&) {}
void end_program(Wave& wave, const Inst&) { wave.state = WaveState::ended; }
void barrier(Wave& wave, const Inst&) { wave.state = WaveState::at_barrier; }
void trap(Wave&, const Inst&) { throw Stop("the kernel traps"); }

void jump(Wave& wave, const Inst& inst) {
  if (inst.target == ~0U) throw Stop("branches to where no instruction of the kernel starts");
  wave.next = inst.target;
}
template <auto condition> void jump_if(Wave& wave, const Inst& inst) {
  if (condition(wave)) jump(wave, inst);
}

void wait_counts(Wave& wave, const Inst& inst) {
  if (wave.in_flight == nullptr) return;
  if (wave.counters != nullptr) {
    InstCounters& c = wave.counters[wave.pc];
    const std::uint64_t bytes = wave.in_flight->loaded_bytes();
    c.in_flight += bytes;
    c.in_flight_peak = std::max(c.in_flight_peak, bytes);
    c.note_outstanding(wave.in_flight->outstanding_vm(), wave.in_flight->outstanding_lgkm());
  }
  wave.in_flight->wait(isa::wait_fields(inst.fields.simm16));
}

// Cache control moves nothing here, but some of it has to be waited for (LLVM, SIInsertWaitcnts.cpp; buffer_inv has not).
void control_cache(Wave& wave, const Inst& inst) {
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

void get_pc(Wave& wave, const Inst& inst) { wave.set_pair(inst.fields.dst, wave.code_base + inst.address + 4); }

// To a device address: it must be the first byte of an instruction of the kernel.
void jump_to(Wave& wave, std::uint64_t target) {
  const auto at = std::ranges::lower_bound(wave.program, target - wave.code_base, {}, &Inst::address);
  if (at == wave.program.end() || at->address != target - wave.code_base)
    throw Stop(fmt::format("branches to {:#x}, where no instruction of the kernel starts", target));
  wave.next = static_cast<u32>(at - wave.program.begin());
}
void set_pc(Wave& wave, const Inst& inst) { jump_to(wave, read_scalar(wave, inst.src[0])); }
void swap_pc(Wave& wave, const Inst& inst) {
  const std::uint64_t target = read_scalar(wave, inst.src[0]);
  get_pc(wave, inst);
  jump_to(wave, target);
}
void call(Wave& wave, const Inst& inst) {
  get_pc(wave, inst);
  jump_to(wave,
          wave.code_base + inst.address + 4 + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(inst.fields.simm16)} * 4));
}

// Bits [offset, offset + size) of a hardware register; simm16 is {size - 1, offset, number}.
struct HardwareField {
  u32 number, offset, size;
  explicit HardwareField(u32 k) : number(k & 0x3fU), offset(k >> 6 & 0x1fU), size((k >> 11 & 0x1fU) + 1) {}
  u32 mask() const { return static_cast<u32>(((1ULL << size) - 1) << offset); }
};
constexpr u32 hw_mode = 1, hw_shader_cycles = 29, hw_xcc_id = 20, hw_id = 4;

void get_register(Wave& wave, const Inst& inst) {
  const HardwareField field(inst.fields.simm16);
  u32 value = 0;
  switch (field.number) {
  case hw_mode: value = wave.mode; break;
  case hw_id: value = static_cast<u32>(wave.index); break;
  case hw_xcc_id: value = 0; break;
  case hw_shader_cycles: value = static_cast<u32>(wave.clock); break;
  default: throw Stop(fmt::format("reads hardware register {}, which the executor does not model", field.number));
  }
  wave.s[inst.fields.dst] = (value & field.mask()) >> field.offset;
}

void set_mode(Wave& wave, const Inst& inst, u32 value) {
  const HardwareField field(inst.fields.simm16);
  if (field.number != hw_mode) throw Stop(fmt::format("writes hardware register {}, which the executor does not model", field.number));
  wave.mode = (wave.mode & ~field.mask()) | (value << field.offset & field.mask());
}
void set_register(Wave& wave, const Inst& inst) { set_mode(wave, inst, wave.s[inst.fields.dst]); }
void set_register_immediate(Wave& wave, const Inst& inst) { set_mode(wave, inst, inst.fields.literal); }

constexpr Semantics table[] = {
    entry("s_endpgm", end_program),
    entry("s_endpgm_saved", end_program),
    entry("s_branch", jump),
    entry("s_cbranch_scc0", jump_if<[](const Wave& w) { return !w.scc; }>),
    entry("s_cbranch_scc1", jump_if<[](const Wave& w) { return w.scc; }>),
    entry("s_cbranch_vccz", jump_if<[](const Wave& w) { return w.pair(code::vcc) == 0; }>),
    entry("s_cbranch_vccnz", jump_if<[](const Wave& w) { return w.pair(code::vcc) != 0; }>),
    entry("s_cbranch_execz", jump_if<[](const Wave& w) { return w.exec() == 0; }>),
    entry("s_cbranch_execnz", jump_if<[](const Wave& w) { return w.exec() != 0; }>),
    entry("s_barrier", barrier),
    entry("s_waitcnt", wait_counts),
    entry("s_nop", nothing),
    entry("v_nop", nothing),
    entry("s_sleep", nothing),
    entry("s_setprio", nothing),
    entry("s_sethalt", nothing),
    entry("s_incperflevel", nothing),
    entry("s_decperflevel", nothing),
    entry("s_icache_inv", nothing),
    entry("s_dcache_inv", control_cache),
    entry("s_dcache_wb", control_cache),
    entry("s_dcache_inv_vol", control_cache),
    entry("s_dcache_wb_vol", control_cache),
    entry("buffer_inv", nothing),
    entry("buffer_wbl2", control_cache),
    entry("s_trap", trap),
    entry("s_setpc_b64", set_pc, Type::none, {Type::u64}),
    entry("s_swappc_b64", swap_pc, Type::u64, {Type::u64}),
    entry("s_call_b64", call, Type::u64),
    entry("s_getpc_b64", get_pc, Type::u64),
    entry("s_getreg_b32", get_register, Type::u32),
    entry("s_setreg_b32", set_register),
    entry("s_setreg_imm32_b32", set_register_immediate),
};

} // namespace

const Semantics& not_modelled_semantics() { return unknown; }
SemanticsTable control_table() { return table; }

} // namespace kiln::exec
