// ds_ instructions: LDS reads, writes and atomics, and the lane exchanges that use its crossbar.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/instructions/lds_access.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/measurements.h"
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/sanitisers/definedness.h"
#include "isa_checks/exec/sanitisers/lds_tracking.h"
#include "isa_checks/target/lds_banks.h"
#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace kiln::exec {
namespace {

// Adds bytes, bank passes needed, and passes without conflicts, to the counters of the instruction being executed.
void count_banks(Wave& wave, const LaneAccess& op, const WaveAddresses& at) {
  if (wave.counters == nullptr && wave.observer == nullptr) return;
  const isa::BankPasses passes =
      isa::lds_bank_passes(wave.target->lds_read_banks, op.store, op.bytes, std::span<const std::uint64_t, 64>(at.lane), at.mask);
  if (wave.observer != nullptr) wave.observer->access_lds(wave, wave.program[wave.pc], op, at, passes);
  if (wave.counters == nullptr) return;
  InstCounters& c = wave.counters[wave.pc];
  c.bytes += static_cast<std::uint64_t>(std::popcount(at.mask)) * op.bytes;
  c.lds_cycles += passes.needed;
  c.lds_ideal += passes.ideal;
}

// Whether all lanes, on or off, access the workgroup's LDS.
bool lies_in_lds(const Wave& wave, const LaneAccess& op, const WaveAddresses& at) {
  return *std::ranges::max_element(at.lane) + op.bytes <= wave.group->lds.size();
}

} // namespace

std::byte* lds_bytes(Wave& wave, const Inst& inst, u64 address, unsigned bytes, int lane, std::string_view what) {
  std::vector<std::byte>& lds = wave.group->lds;
  if (address + bytes <= lds.size()) return lds.data() + address;
  report(wave, inst, DefectKind::out_of_bounds, lane,
         [&] { return fmt::format("{}{} bytes at LDS byte {}, the workgroup has {}", what, bytes, address, lds.size()); });
  return nullptr;
}

void issue_lds(Wave& wave, const Inst& inst) {
  if (wave.in_flight != nullptr) wave.in_flight->issue(inst);
}

WaveAddresses lds_addresses(Wave& wave, const Inst& inst, u32 offset) {
  const u32* const base = wave.lanes(inst.src[0].reg);
  WaveAddresses at;
  at.mask = wave.exec();
  // 32 bits, as LLVM counts on from CI on (AMDGPUISelDAGToDAG.cpp, isDSOffsetLegal): a base may be negative.
  for (int i = 0; i < lane_count; ++i) at.lane[i] = base[i] + offset;
  return at;
}

void read_lds_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg) {
  count_banks(wave, op, at);
  track_lds_read(wave, inst, op, at, reg);
  if (wave.only_accesses && lies_in_lds(wave, op, at)) return;
  u32* const to = wave.lanes(reg);
  for_each_lane(at.mask, [&](int i) { load_one(lds_bytes(wave, inst, at.lane[i], op.bytes, i), to, i, op); });
}

namespace {

void write_lds_lanes(Wave& wave, const Inst& inst, const WaveAddresses& at, std::uint16_t reg) {
  const LaneAccess& op = *inst.op->memory;
  count_banks(wave, op, at);
  track_lds_write(wave, inst, op, at, reg);
  if (wave.only_accesses && lies_in_lds(wave, op, at)) return;
  const u32* const from = wave.lanes(reg);
  for_each_lane(at.mask, [&](int i) { store_one(lds_bytes(wave, inst, at.lane[i], op.bytes, i), from, i, op); });
}

// Each lane's word of an array at M0 + offset.
WaveAddresses addresses_by_lane(const Wave& wave, const Inst& inst) {
  WaveAddresses at;
  at.mask = wave.exec();
  for (u32 i = 0; i < lane_count; ++i) at.lane[i] = (wave.s[code::m0] & 0xffffU) + static_cast<u32>(inst.fields.offset) + 4 * i;
  return at;
}
template <bool by_lane> WaveAddresses addresses(Wave& wave, const Inst& inst) {
  return by_lane ? addresses_by_lane(wave, inst) : lds_addresses(wave, inst, static_cast<u32>(inst.fields.offset));
}
// One of the two accesses of a lane, at offset0 or offset1 in units of the op's pair_stride.
WaveAddresses pair_addresses(Wave& wave, const Inst& inst, int k) {
  const LaneAccess& op = *inst.op->memory;
  return lds_addresses(wave, inst, (k == 0 ? inst.fields.offset0 : inst.fields.offset1) * u32{op.pair_stride} * op.bytes);
}

template <bool by_lane = false> void read(Wave& wave, const Inst& inst) {
  const LaneAccess& op = *inst.op->memory;
  read_lds_lanes(wave, inst, op, addresses<by_lane>(wave, inst), inst.dst.reg);
  issue_lds(wave, inst);
}

template <bool by_lane = false> void write(Wave& wave, const Inst& inst) {
  write_lds_lanes(wave, inst, addresses<by_lane>(wave, inst), inst.src[1].reg);
  issue_lds(wave, inst);
}

void read_pair(Wave& wave, const Inst& inst) {
  const LaneAccess& op = *inst.op->memory;
  const WaveAddresses at[2] = {pair_addresses(wave, inst, 0), pair_addresses(wave, inst, 1)}; // the destination may hold them
  const int words = op.bytes / 4;
  for (int k = 0; k < 2; ++k) read_lds_lanes(wave, inst, op, at[k], static_cast<std::uint16_t>(inst.dst.reg + k * words));
  issue_lds(wave, inst);
}

void write_pair(Wave& wave, const Inst& inst) {
  for (int k = 0; k < 2; ++k) write_lds_lanes(wave, inst, pair_addresses(wave, inst, k), inst.src[static_cast<std::size_t>(1 + k)].reg);
  issue_lds(wave, inst);
}

void atomic(Wave& wave, const Inst& inst) {
  const LaneAccess& op = *inst.op->memory;
  const WaveAddresses at = addresses<false>(wave, inst);
  count_banks(wave, op, at);
  track_lds_atomic(wave, inst, op, at);
  const u32* const data = wave.lanes(inst.src[1].reg);
  const u32* const second = wave.lanes(inst.src[2].reg);
  u32* const to = op.returns ? wave.lanes(inst.dst.reg) : nullptr;
  for_each_lane(at.mask, [&](int i) {
    u64 old = 0;
    if (std::byte* host = lds_bytes(wave, inst, at.lane[i], op.bytes, i)) {
      std::memcpy(&old, host, op.bytes);
      // With two data registers the second is the new value; ds_cmpst compares with the first.
      const bool two = takes_two(op.atomic);
      const u64 first = lane_word(data, i, op.bytes), other = two ? lane_word(second, i, op.bytes) : 0;
      const u64 now = two ? apply_atomic(op.atomic, op.bytes, old, other, first) : apply_atomic(op.atomic, op.bytes, old, first, 0);
      std::memcpy(host, &now, op.bytes);
    }
    if (to != nullptr) set_lane_word(to, i, op.bytes, old);
  });
  issue_lds(wave, inst);
}

void mark_lanes_written(const Wave& wave, std::uint16_t reg) {
  if (wave.shadow != nullptr)
    for (u64& undefined : wave.shadow->vector[reg]) undefined &= ~wave.exec();
}

// ds_wrxchg2: two exchanges a lane, at offset0 and offset1.
void exchange_pair(Wave& wave, const Inst& inst) {
  const LaneAccess& op = *inst.op->memory;
  const int words = op.bytes / 4;
  u32 old[4][lane_count] = {}; // the destination may be a source too
  for (int k = 0; k < 2; ++k) {
    const WaveAddresses at = pair_addresses(wave, inst, k);
    count_banks(wave, op, at);
    track_lds_atomic(wave, inst, op, at);
    const u32* const data = wave.lanes(inst.src[static_cast<std::size_t>(1 + k)].reg);
    for_each_lane(at.mask, [&](int i) {
      std::byte* const host = lds_bytes(wave, inst, at.lane[i], op.bytes, i);
      for (int w = 0; w < words && host != nullptr; ++w) {
        std::memcpy(&old[k * words + w][i], host + 4 * w, 4);
        std::memcpy(host + 4 * w, &data[w * lane_count + i], 4);
      }
    });
  }
  for (int w = 0; w < 2 * words; ++w) {
    u32* const to = wave.lanes(static_cast<std::uint16_t>(inst.dst.reg + w));
    for_each_lane(wave.exec(), [&](int i) { to[i] = old[w][i]; });
    mark_lanes_written(wave, static_cast<std::uint16_t>(inst.dst.reg + w));
  }
  issue_lds(wave, inst);
}

// ds_append and ds_consume: the number of active lanes is added to, or taken from, the word at M0 + offset, once for the wave;
// all lanes get the old value.
template <bool adds> void count_lanes(Wave& wave, const Inst& inst) {
  const u64 exec = wave.exec();
  WaveAddresses at;
  at.mask = exec & (~exec + 1); // the first active lane
  const u64 address = (wave.s[code::m0] & 0xffffU) + static_cast<u32>(inst.fields.offset);
  for (u64& lane : at.lane) lane = address;
  track_lds_atomic(wave, inst, *inst.op->memory, at);
  u32* const to = wave.lanes(inst.dst.reg);
  u32 old = 0;
  if (exec != 0)
    if (std::byte* host = lds_bytes(wave, inst, address, 4, std::countr_zero(exec))) {
      std::memcpy(&old, host, 4);
      const u32 lanes = static_cast<u32>(std::popcount(exec)), now = adds ? old + lanes : old - lanes;
      std::memcpy(host, &now, 4);
    }
  for_each_lane(exec, [&](int i) { to[i] = old; });
  mark_lanes_written(wave, inst.dst.reg);
  issue_lds(wave, inst);
}

// What the lanes that are on get of an exchange.
void write_exchanged(Wave& wave, const Inst& inst, const u32 (&result)[lane_count]) {
  u32* const to = wave.lanes(inst.dst.reg);
  for_each_lane(wave.exec(), [&](int i) { to[i] = result[i]; });
  issue_lds(wave, inst);
}
// Each lane reads `data` of another one; lanes that are off give 0.
template <class Source> void gather(Wave& wave, const Inst& inst, const u32* data, Source source) {
  u32 result[lane_count];
  for (int i = 0; i < lane_count; ++i) result[i] = active(wave.exec(), source(i)) ? data[source(i)] : 0;
  write_exchanged(wave, inst, result);
}

// ds_bpermute: lane i reads data of lane address/4. ds_permute: lane i writes to it.
int named_lane(Wave& wave, const Inst& inst, int i) {
  return static_cast<int>((wave.lanes(inst.src[0].reg)[i] + static_cast<u32>(inst.fields.offset)) / 4 % lane_count);
}
void bpermute(Wave& wave, const Inst& inst) {
  gather(wave, inst, wave.lanes(inst.src[1].reg), [&](int i) { return named_lane(wave, inst, i); });
}
void permute(Wave& wave, const Inst& inst) {
  const u32* const data = wave.lanes(inst.src[1].reg);
  u32 result[lane_count] = {};
  for_each_lane(wave.exec(), [&](int i) { result[named_lane(wave, inst, i)] = data[i]; });
  write_exchanged(wave, inst, result);
}

// The source lane of ds_swizzle_b32 by its offset field: quad permutation, rotation, or and/or/xor masks in groups of 32.
int swizzle_lane(u32 offset, int lane) {
  if ((offset & 0xc000U) == 0xc000U) { // rotation in 32: bit 10 direction, bits 9:5 distance, bits 4:0 mask of fixed lanes
    const int distance = static_cast<int>(offset >> 5 & 0x1fU), fixed = static_cast<int>(offset & 0x1fU);
    const int turned = (offset >> 10 & 1U) != 0 ? lane - distance : lane + distance;
    return (lane & 32) | (lane & fixed) | (turned & 31 & ~fixed);
  }
  if ((offset & 0x8000U) != 0) return (lane & ~3) + static_cast<int>(offset >> (2 * (lane & 3)) & 3U);
  const int and_mask = static_cast<int>(offset & 0x1fU), or_mask = static_cast<int>(offset >> 5 & 0x1fU);
  const int xor_mask = static_cast<int>(offset >> 10 & 0x1fU);
  return (lane & 32) | ((((lane & 31) & and_mask) | or_mask) ^ xor_mask);
}
void swizzle(Wave& wave, const Inst& inst) {
  gather(wave, inst, wave.lanes(inst.src[0].reg), [&](int i) { return swizzle_lane(static_cast<u32>(inst.fields.offset), i); });
}

#define KILN_LDS_ATOMIC(name, rtn, width, size, operation)                                                                                 \
  line<LaneAccess{.bytes = size, .atomic = Atomic::operation}>("ds_" name "_" width, atomic),                                              \
      line<LaneAccess{.bytes = size, .atomic = Atomic::operation, .returns = true}>("ds_" rtn "_" width, atomic)
#define KILN_LDS_ATOMICS(name, type, operation)                                                                                            \
  KILN_LDS_ATOMIC(name, name "_rtn", type "32", 4, operation), KILN_LDS_ATOMIC(name, name "_rtn", type "64", 8, operation)

constexpr Semantics table[] = {
    line<LaneAccess{.bytes = 1}>("ds_read_u8", read<>),
    line<LaneAccess{.bytes = 1, .sign = true}>("ds_read_i8", read<>),
    line<LaneAccess{.bytes = 2}>("ds_read_u16", read<>),
    line<LaneAccess{.bytes = 2, .sign = true}>("ds_read_i16", read<>),
    line<LaneAccess{.bytes = 1, .half = 1}>("ds_read_u8_d16", read<>),
    line<LaneAccess{.bytes = 1, .half = 2}>("ds_read_u8_d16_hi", read<>),
    line<LaneAccess{.bytes = 1, .sign = true, .half = 1}>("ds_read_i8_d16", read<>),
    line<LaneAccess{.bytes = 1, .sign = true, .half = 2}>("ds_read_i8_d16_hi", read<>),
    line<LaneAccess{.bytes = 2, .half = 1}>("ds_read_u16_d16", read<>),
    line<LaneAccess{.bytes = 2, .half = 2}>("ds_read_u16_d16_hi", read<>),
    line<LaneAccess{.bytes = 4}>("ds_read_b32", read<>),
    line<LaneAccess{.bytes = 8}>("ds_read_b64", read<>),
    line<LaneAccess{.bytes = 12}>("ds_read_b96", read<>),
    line<LaneAccess{.bytes = 16}>("ds_read_b128", read<>),
    line<LaneAccess{.bytes = 1, .store = true}>("ds_write_b8", write<>),
    line<LaneAccess{.bytes = 1, .store = true, .half = 2}>("ds_write_b8_d16_hi", write<>),
    line<LaneAccess{.bytes = 2, .store = true}>("ds_write_b16", write<>),
    line<LaneAccess{.bytes = 2, .store = true, .half = 2}>("ds_write_b16_d16_hi", write<>),
    line<LaneAccess{.bytes = 4, .store = true}>("ds_write_b32", write<>),
    line<LaneAccess{.bytes = 8, .store = true}>("ds_write_b64", write<>),
    line<LaneAccess{.bytes = 12, .store = true}>("ds_write_b96", write<>),
    line<LaneAccess{.bytes = 16, .store = true}>("ds_write_b128", write<>),
    line<LaneAccess{.bytes = 4, .pair_stride = 1}>("ds_read2_b32", read_pair),
    line<LaneAccess{.bytes = 8, .pair_stride = 1}>("ds_read2_b64", read_pair),
    line<LaneAccess{.bytes = 4, .pair_stride = 64}>("ds_read2st64_b32", read_pair),
    line<LaneAccess{.bytes = 8, .pair_stride = 64}>("ds_read2st64_b64", read_pair),
    line<LaneAccess{.bytes = 4, .store = true, .pair_stride = 1}>("ds_write2_b32", write_pair),
    line<LaneAccess{.bytes = 8, .store = true, .pair_stride = 1}>("ds_write2_b64", write_pair),
    line<LaneAccess{.bytes = 4, .store = true, .pair_stride = 64}>("ds_write2st64_b32", write_pair),
    line<LaneAccess{.bytes = 8, .store = true, .pair_stride = 64}>("ds_write2st64_b64", write_pair),
    line<LaneAccess{}>("ds_bpermute_b32", bpermute),
    line<LaneAccess{}>("ds_permute_b32", permute),
    line<LaneAccess{}>("ds_swizzle_b32", swizzle),
    line<LaneAccess{}>("ds_nop", issue_lds),
    KILN_LDS_ATOMICS("add", "u", add),
    KILN_LDS_ATOMICS("sub", "u", sub),
    KILN_LDS_ATOMICS("rsub", "u", rsub),
    KILN_LDS_ATOMICS("inc", "u", inc),
    KILN_LDS_ATOMICS("dec", "u", dec),
    KILN_LDS_ATOMICS("min", "i", smin),
    KILN_LDS_ATOMICS("max", "i", smax),
    KILN_LDS_ATOMICS("min", "u", umin),
    KILN_LDS_ATOMICS("max", "u", umax),
    KILN_LDS_ATOMICS("and", "b", bit_and),
    KILN_LDS_ATOMICS("or", "b", bit_or),
    KILN_LDS_ATOMICS("xor", "b", bit_xor),
    KILN_LDS_ATOMICS("cmpst", "b", cmpswap),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::swap, .returns = true}>("ds_wrxchg_rtn_b32", atomic),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::swap, .returns = true}>("ds_wrxchg_rtn_b64", atomic),
    KILN_LDS_ATOMICS("mskor", "b", masked_or),
    KILN_LDS_ATOMIC("cmpst", "cmpst_rtn", "f32", 4, cmpswap_f32),
    KILN_LDS_ATOMIC("cmpst", "cmpst_rtn", "f64", 8, cmpswap_f64),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::wrap, .returns = true}>("ds_wrap_rtn_b32", atomic),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::swap, .returns = true, .pair_stride = 1}>("ds_wrxchg2_rtn_b32", exchange_pair),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::swap, .returns = true, .pair_stride = 1}>("ds_wrxchg2_rtn_b64", exchange_pair),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::swap, .returns = true, .pair_stride = 64}>("ds_wrxchg2st64_rtn_b32", exchange_pair),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::swap, .returns = true, .pair_stride = 64}>("ds_wrxchg2st64_rtn_b64", exchange_pair),
    line<LaneAccess{.bytes = 4}>("ds_read_addtid_b32", read<true>),
    line<LaneAccess{.bytes = 4, .store = true}>("ds_write_addtid_b32", write<true>),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::add, .returns = true}>("ds_append", count_lanes<true>),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::sub, .returns = true}>("ds_consume", count_lanes<false>),
    KILN_LDS_ATOMIC("add", "add_rtn", "f32", 4, add_f32),
    KILN_LDS_ATOMIC("min", "min_rtn", "f32", 4, min_f32),
    KILN_LDS_ATOMIC("max", "max_rtn", "f32", 4, max_f32),
    KILN_LDS_ATOMIC("add", "add_rtn", "f64", 8, add_f64),
    KILN_LDS_ATOMIC("min", "min_rtn", "f64", 8, min_f64),
    KILN_LDS_ATOMIC("max", "max_rtn", "f64", 8, max_f64),
    KILN_LDS_ATOMIC("pk_add", "pk_add_rtn", "f16", 4, pk_add_f16),
    KILN_LDS_ATOMIC("pk_add", "pk_add_rtn", "bf16", 4, pk_add_bf16),
};

} // namespace

SemanticsTable lds_table() { return table; }

} // namespace kiln::exec
