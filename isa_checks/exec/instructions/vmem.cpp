// flat_, global_ and scratch_ instructions: addresses. The table of what each moves, buffer_ instructions too.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/instructions/lds_access.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/sanitisers/lds_tracking.h"
#include <bit>
#include <cstring>

namespace kiln::exec {
namespace {

void atomic_one(Wave& wave, const Inst& inst, const LaneAccess& op, std::byte* host, int lane) {
  const u32* const data = wave.lanes(inst.src[1].reg);
  u64 old = 0;
  if (host != nullptr) {
    std::memcpy(&old, host, op.bytes);
    const u64 first = lane_word(data, lane, op.bytes);
    const u64 compare = op.atomic == Atomic::cmpswap ? lane_word(data + op.bytes / 4 * lane_count, lane, op.bytes) : 0;
    const u64 now = apply_atomic(op.atomic, op.bytes, old, first, compare);
    std::memcpy(host, &now, op.bytes);
  }
  if (inst.fields.sc0) // returns the old value
    set_lane_word(wave.lanes(inst.dst.reg), lane, op.bytes, old);
}

// A load, store or atomic on LDS through flat addresses that stand for it; `at` holds LDS bytes.
void flat_lds_access(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  const bool atomic = op.atomic != Atomic::none;
  if (atomic) track_lds_atomic(wave, inst, op, at);
  else if (op.store) track_lds_write(wave, inst, op, at, inst.src[1].reg);
  else track_lds_read(wave, inst, op, at, inst.dst.reg);
  for_each_lane(at.mask, [&](int i) {
    std::byte* const host = lds_bytes(wave, inst, at.lane[i], op.bytes, i, "a flat access of ");
    if (atomic) atomic_one(wave, inst, op, host, i);
    else if (op.store) store_one(host, wave.lanes(inst.src[1].reg), i, op);
    else load_one(host, wave.lanes(inst.dst.reg), i, op);
  });
}

constexpr std::uint16_t no_saddr = 0x7f;

// global_: 64-bit vector address, or scalar base plus 32-bit vector offset. flat_: 64-bit vector address.
void device_addresses(Wave& wave, const Inst& inst, WaveAddresses& at) {
  const Fields& f = inst.fields;
  const u64 offset = static_cast<u64>(static_cast<std::int64_t>(f.offset));
  const u32* const low = wave.lanes(inst.src[0].reg);
  at.mask = wave.exec();
  if (f.segment == 2 && f.saddr != no_saddr) {
    const u64 base = wave.pair(f.saddr) + offset;
    for (int i = 0; i < lane_count; ++i) at.lane[i] = base + low[i];
    return;
  }
  for (int i = 0; i < lane_count; ++i) at.lane[i] = (low[i] | static_cast<u64>(low[i + lane_count]) << 32) + offset;
}

// scratch_: an offset into the lane's private memory, from a scalar register, a vector register, or both.
void scratch_addresses(Wave& wave, const Inst& inst, const LaneAccess& op, WaveAddresses& at) {
  const Fields& f = inst.fields;
  const u32* const vector = f.offen ? wave.lanes(inst.src[0].reg) : nullptr;
  const u32 scalar = f.saddr != no_saddr ? read_scalar_code(wave, f.saddr) : 0;
  at.mask = wave.exec();
  for (int i = 0; i < lane_count; ++i) {
    const u32 offset = scalar + static_cast<u32>(f.offset) + (vector != nullptr ? vector[i] : 0);
    if (active(at.mask, i) && static_cast<u64>(offset) + op.bytes > wave.scratch_size)
      throw Stop("accesses private memory beyond what the kernel declares");
    at.lane[i] = wave.scratch_base + static_cast<u64>(i) * wave.scratch_size + offset;
  }
}

// Flat addresses of the two apertures stand for LDS and for the lane's private memory. Takes those lanes out of `at`.
void apertures(Wave& wave, const Inst& inst, const LaneAccess& op, WaveAddresses& at) {
  WaveAddresses lds;
  for (u64 m = at.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    const u64 aperture = at.lane[i] >> 32 << 32, offset = at.lane[i] & 0xffffffffU;
    if (aperture == shared_aperture) {
      lds.lane[i] = offset;
      lds.mask |= 1ULL << i;
    } else if (aperture == private_aperture) {
      if (offset + op.bytes > wave.scratch_size) throw Stop("accesses private memory beyond what the kernel declares");
      at.lane[i] = wave.scratch_base + static_cast<u64>(i) * wave.scratch_size + offset;
    }
  }
  at.mask &= ~lds.mask;
  if (lds.mask != 0) flat_lds_access(wave, inst, op, lds);
}

void access(Wave& wave, const Inst& inst) {
  const LaneAccess& op = *inst.op->memory;
  WaveAddresses at;
  if (inst.fields.segment == 1) scratch_addresses(wave, inst, op, at);
  else device_addresses(wave, inst, at);
  const u64 lanes = at.mask;
  if (inst.fields.segment == 0) apertures(wave, inst, op, at);
  if (at.mask != 0 || lanes == 0) device_access(wave, inst, op, at);
  note_in_flight(wave, inst, op, at);
}

// One operation under its four prefixes.
#define KILN_VMEM(name, ...)                                                                                                               \
  line<LaneAccess{__VA_ARGS__}>("global_" name, access), line<LaneAccess{__VA_ARGS__}>("flat_" name, access),                              \
      line<LaneAccess{__VA_ARGS__}>("scratch_" name, access), line<LaneAccess{__VA_ARGS__}>("buffer_" name, buffer_access)
// The atomics on whole numbers.
#define KILN_ATOMIC(name, operation)                                                                                                       \
  KILN_VMEM("atomic_" name, .bytes = 4, .atomic = Atomic::operation),                                                                      \
      KILN_VMEM("atomic_" name "_x2", .bytes = 8, .atomic = Atomic::operation)

constexpr Semantics table[] = {
    KILN_VMEM("load_ubyte", .bytes = 1),
    KILN_VMEM("load_sbyte", .bytes = 1, .sign = true),
    KILN_VMEM("load_ushort", .bytes = 2),
    KILN_VMEM("load_sshort", .bytes = 2, .sign = true),
    KILN_VMEM("load_dword", .bytes = 4),
    KILN_VMEM("load_dwordx2", .bytes = 8),
    KILN_VMEM("load_dwordx3", .bytes = 12),
    KILN_VMEM("load_dwordx4", .bytes = 16),
    KILN_VMEM("load_ubyte_d16", .bytes = 1, .half = 1),
    KILN_VMEM("load_ubyte_d16_hi", .bytes = 1, .half = 2),
    KILN_VMEM("load_sbyte_d16", .bytes = 1, .sign = true, .half = 1),
    KILN_VMEM("load_sbyte_d16_hi", .bytes = 1, .sign = true, .half = 2),
    KILN_VMEM("load_short_d16", .bytes = 2, .half = 1),
    KILN_VMEM("load_short_d16_hi", .bytes = 2, .half = 2),
    KILN_VMEM("store_byte", .bytes = 1, .store = true),
    KILN_VMEM("store_byte_d16_hi", .bytes = 1, .store = true, .half = 2),
    KILN_VMEM("store_short", .bytes = 2, .store = true),
    KILN_VMEM("store_short_d16_hi", .bytes = 2, .store = true, .half = 2),
    KILN_VMEM("store_dword", .bytes = 4, .store = true),
    KILN_VMEM("store_dwordx2", .bytes = 8, .store = true),
    KILN_VMEM("store_dwordx3", .bytes = 12, .store = true),
    KILN_VMEM("store_dwordx4", .bytes = 16, .store = true),
    line<LaneAccess{.bytes = 1, .to_lds = true}>("global_load_lds_ubyte", access),
    line<LaneAccess{.bytes = 1, .sign = true, .to_lds = true}>("global_load_lds_sbyte", access),
    line<LaneAccess{.bytes = 2, .to_lds = true}>("global_load_lds_ushort", access),
    line<LaneAccess{.bytes = 2, .sign = true, .to_lds = true}>("global_load_lds_sshort", access),
    line<LaneAccess{.bytes = 4, .to_lds = true}>("global_load_lds_dword", access),
    line<LaneAccess{.bytes = 12, .to_lds = true}>("global_load_lds_dwordx3", access),
    line<LaneAccess{.bytes = 16, .to_lds = true}>("global_load_lds_dwordx4", access),
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
    KILN_VMEM("atomic_add_f32", .bytes = 4, .atomic = Atomic::add_f32),
    KILN_VMEM("atomic_pk_add_f16", .bytes = 4, .atomic = Atomic::pk_add_f16),
    KILN_VMEM("atomic_pk_add_bf16", .bytes = 4, .atomic = Atomic::pk_add_bf16),
    KILN_VMEM("atomic_add_f64", .bytes = 8, .atomic = Atomic::add_f64),
    KILN_VMEM("atomic_min_f64", .bytes = 8, .atomic = Atomic::min_f64),
    KILN_VMEM("atomic_max_f64", .bytes = 8, .atomic = Atomic::max_f64),
};

} // namespace

SemanticsTable vector_memory_table() { return table; }

} // namespace kiln::exec
