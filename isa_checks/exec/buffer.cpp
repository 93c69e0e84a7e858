// buffer_ instructions: addresses through a resource descriptor, with its range check.
#include "isa_checks/exec/control.h"
#include "isa_checks/exec/memory_ops.h"
#include "isa_checks/exec/tables.h"
#include <algorithm>

namespace kiln::exec {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Descriptor {
  u64 base = 0;
  u32 stride = 0, records = 0;
  bool swizzled = false, adds_lane = false;
};

Descriptor read_descriptor(const Wave& wave, std::uint16_t reg) {
  const u32* const d = &wave.s[reg];
  return {d[0] | static_cast<u64>(d[1] & 0xffffU) << 32, d[1] >> 16 & 0x3fffU, d[2], (d[1] >> 31) != 0, (d[3] >> 23 & 1U) != 0};
}

// Lanes whose access is in range; the others read 0 and do not store. Raw buffers (stride 0) count bytes, structured ones records.
void buffer_addresses(Wave& wave, const Inst& inst, const MemoryOp& op, LaneAddresses& at, u64& out_of_range) {
  const Fields& f = inst.fields;
  const Descriptor d = read_descriptor(wave, f.saddr);
  if (d.swizzled || d.adds_lane) throw Stop("uses a swizzled buffer descriptor, which the executor does not model");
  const u32 scalar = read_scalar_code(wave, f.soffset);
  const u32* vector = wave.lanes(inst.src[0].reg);
  at.mask = wave.exec();
  out_of_range = 0;
  for (int i = 0; i < lane_count; ++i) {
    const u32 index = f.idxen ? vector[i] : 0;
    const u32 lane_offset = f.offen ? vector[i + (f.idxen ? lane_count : 0)] : 0;
    const u64 offset = static_cast<u64>(lane_offset) + static_cast<u32>(f.offset);
    at.lane[i] = d.base + scalar + static_cast<u64>(index) * d.stride + offset;
    const bool inside = d.stride == 0 ? offset + scalar + op.bytes <= d.records : index < d.records && (!f.idxen || offset + op.bytes <= d.stride);
    if (active(at.mask, i) && !inside) out_of_range |= 1ULL << i;
  }
  at.mask &= ~out_of_range;
}

void zero_lanes(Wave& wave, const Inst& inst, const MemoryOp& op, u64 lanes) {
  for (int w = 0; w < std::max(op.bytes / 4, 1); ++w) {
    u32* const to = wave.lanes(static_cast<std::uint16_t>(inst.dst.reg + w));
    for (u64 m = lanes; m != 0; m &= m - 1) {
      u32& word = to[std::countr_zero(m)];
      word = op.half == 1 ? word & 0xffff0000U : op.half == 2 ? word & 0xffffU : 0;
    }
  }
}

void access(Wave& wave, const Inst& inst) {
  MemoryOp op = *inst.op->memory;
  op.to_lds = inst.fields.lds;
  LaneAddresses at;
  u64 out_of_range = 0;
  buffer_addresses(wave, inst, op, at, out_of_range);
  count_lines(wave, inst, op, at);
  const bool returns = op.atomic == Atomic::none ? !op.store && !op.to_lds : inst.fields.sc0;
  if (op.to_lds) load_to_lds(wave, inst, op, at);
  else if (op.atomic != Atomic::none) atomic_lanes(wave, inst, op, at);
  else if (op.store) store_lanes(wave, inst, op, at);
  else load_lanes(wave, inst, op, at);
  if (returns) zero_lanes(wave, inst, op, out_of_range);
  note_in_flight(wave, inst, op, at);
}

template <MemoryOp op> inline constexpr MemoryOp stored = op;
template <MemoryOp op> constexpr Semantics line(std::string_view name) { return {name, &access, {}, InstClass::vmem, &stored<op>}; }

#define KILN_ATOMIC(name, operation)                                                                                           \
  line<MemoryOp{.bytes = 4, .atomic = Atomic::operation}>("buffer_atomic_" name),                                              \
      line<MemoryOp{.bytes = 8, .atomic = Atomic::operation}>("buffer_atomic_" name "_x2")

constexpr Semantics table[] = {
    line<MemoryOp{.bytes = 1}>("buffer_load_ubyte"),
    line<MemoryOp{.bytes = 1, .sign = true}>("buffer_load_sbyte"),
    line<MemoryOp{.bytes = 2}>("buffer_load_ushort"),
    line<MemoryOp{.bytes = 2, .sign = true}>("buffer_load_sshort"),
    line<MemoryOp{.bytes = 4}>("buffer_load_dword"),
    line<MemoryOp{.bytes = 8}>("buffer_load_dwordx2"),
    line<MemoryOp{.bytes = 12}>("buffer_load_dwordx3"),
    line<MemoryOp{.bytes = 16}>("buffer_load_dwordx4"),
    line<MemoryOp{.bytes = 1, .half = 1}>("buffer_load_ubyte_d16"),
    line<MemoryOp{.bytes = 1, .half = 2}>("buffer_load_ubyte_d16_hi"),
    line<MemoryOp{.bytes = 1, .sign = true, .half = 1}>("buffer_load_sbyte_d16"),
    line<MemoryOp{.bytes = 1, .sign = true, .half = 2}>("buffer_load_sbyte_d16_hi"),
    line<MemoryOp{.bytes = 2, .half = 1}>("buffer_load_short_d16"),
    line<MemoryOp{.bytes = 2, .half = 2}>("buffer_load_short_d16_hi"),
    line<MemoryOp{.bytes = 1, .store = true}>("buffer_store_byte"),
    line<MemoryOp{.bytes = 1, .store = true, .half = 2}>("buffer_store_byte_d16_hi"),
    line<MemoryOp{.bytes = 2, .store = true}>("buffer_store_short"),
    line<MemoryOp{.bytes = 2, .store = true, .half = 2}>("buffer_store_short_d16_hi"),
    line<MemoryOp{.bytes = 4, .store = true}>("buffer_store_dword"),
    line<MemoryOp{.bytes = 8, .store = true}>("buffer_store_dwordx2"),
    line<MemoryOp{.bytes = 12, .store = true}>("buffer_store_dwordx3"),
    line<MemoryOp{.bytes = 16, .store = true}>("buffer_store_dwordx4"),
    KILN_ATOMIC("swap", swap),
    KILN_ATOMIC("cmpswap", cmpswap),
    KILN_ATOMIC("add", add),
    KILN_ATOMIC("sub", sub),
    KILN_ATOMIC("smin", smin),
    KILN_ATOMIC("umin", umin),
    KILN_ATOMIC("smax", smax),
    KILN_ATOMIC("umax", umax),
    KILN_ATOMIC("and", bit_and),
    KILN_ATOMIC("or", bit_or),
    KILN_ATOMIC("xor", bit_xor),
    KILN_ATOMIC("inc", inc),
    KILN_ATOMIC("dec", dec),
    line<MemoryOp{.bytes = 4, .atomic = Atomic::add_f32}>("buffer_atomic_add_f32"),
    line<MemoryOp{.bytes = 4, .atomic = Atomic::pk_add_f16}>("buffer_atomic_pk_add_f16"),
    line<MemoryOp{.bytes = 4, .atomic = Atomic::pk_add_bf16}>("buffer_atomic_pk_add_bf16"),
    line<MemoryOp{.bytes = 8, .atomic = Atomic::add_f64}>("buffer_atomic_add_f64"),
    line<MemoryOp{.bytes = 8, .atomic = Atomic::min_f64}>("buffer_atomic_min_f64"),
    line<MemoryOp{.bytes = 8, .atomic = Atomic::max_f64}>("buffer_atomic_max_f64"),
};

} // namespace

Table buffer_table() { return table; }

} // namespace kiln::exec
