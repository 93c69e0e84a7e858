// buffer_ instructions: addresses through a resource descriptor, with its range check.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/exec/machine/stop.h"
#include <algorithm>

namespace kiln::exec {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Descriptor {
  u64 base = 0;
  u32 stride = 0, records = 0;
  bool swizzled = false, adds_lane = false;
  u32 index_stride = 8; // swizzled: indices whose words lie side by side
};
constexpr u32 element_bytes = 4; // swizzled: bytes of a record that lie side by side; fixed since GFX9

Descriptor read_descriptor(const Wave& wave, std::uint16_t reg) {
  const u32* const d = &wave.s[reg];
  const bool adds_lane = (d[3] >> 23 & 1U) != 0;
  const u32 stride = (d[1] >> 16 & 0x3fffU) | (adds_lane ? (d[3] >> 15 & 0xfU) << 14 : 0); // the data format's bits extend it then
  return {d[0] | static_cast<u64>(d[1] & 0xffffU) << 32, stride, d[2], (d[1] >> 31) != 0, adds_lane, 8U << (d[3] >> 21 & 3U)};
}

u64 buffer_offset(const Descriptor& d, u64 index, u64 offset) {
  if (!d.swizzled) return index * d.stride + offset;
  const u64 block = index / d.index_stride * d.stride + offset / element_bytes * element_bytes;
  return block * d.index_stride + index % d.index_stride * element_bytes + offset % element_bytes;
}

// Lanes whose access is in range; the others read 0 and do not store. The number of records counts bytes when there is no stride or
// the instruction no index, else records. `first` is the byte of the access that this part of it starts at.
void buffer_addresses(Wave& wave, const Inst& inst, const LaneAccess& op, u32 first, WaveAddresses& at, u64& out_of_range) {
  const Fields& f = inst.fields;
  const Descriptor d = read_descriptor(wave, f.saddr);
  const u32 scalar = read_scalar_code(wave, f.soffset);
  const u32* vector = wave.lanes(inst.src[0].reg);
  at.mask = wave.exec();
  out_of_range = 0;
  for (int i = 0; i < lane_count; ++i) {
    const u64 index = static_cast<u64>(f.idxen ? vector[i] : 0) + (d.adds_lane ? static_cast<u32>(i) : 0U);
    const u32 lane_offset = f.offen ? vector[i + (f.idxen ? lane_count : 0)] : 0;
    const u64 offset = static_cast<u64>(lane_offset) + static_cast<u32>(f.offset) + first, within = buffer_offset(d, index, offset);
    if (d.swizzled && active(at.mask, i) && offset % element_bytes + op.bytes > element_bytes)
      throw Stop("an access across words of a swizzled buffer that is not aligned to them, which the executor does not model");
    at.lane[i] = d.base + scalar + within;
    const bool records = d.stride != 0 && (f.idxen || d.adds_lane);
    const bool inside = records ? index < d.records && offset + op.bytes <= d.stride : within + scalar + op.bytes <= d.records;
    if (active(at.mask, i) && !inside) out_of_range |= 1ULL << i;
  }
  at.mask &= ~out_of_range;
}

void zero_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, u64 lanes) {
  for (int w = 0; w < std::max(op.bytes / 4, 1); ++w) {
    u32* const to = wave.lanes(static_cast<std::uint16_t>(inst.dst.reg + w));
    for (u64 m = lanes; m != 0; m &= m - 1) {
      u32& word = to[std::countr_zero(m)];
      word = in_half(word, 0, op);
    }
  }
}

// Moves op.bytes per lane, from byte `first` of what the instruction accesses on.
void move_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, u32 first, WaveAddresses& at) {
  u64 out_of_range = 0;
  buffer_addresses(wave, inst, op, first, at, out_of_range);
  count_lines(wave, inst, op, at);
  const bool returns = op.atomic == Atomic::none ? !op.store && !op.to_lds : inst.fields.sc0;
  if (op.to_lds) load_to_lds(wave, inst, op, at);
  else if (op.atomic != Atomic::none) atomic_lanes(wave, inst, op, at);
  else if (op.store) store_lanes(wave, inst, op, at);
  else load_lanes(wave, inst, op, at);
  if (returns) zero_lanes(wave, inst, op, out_of_range);
}

// Words of a swizzled buffer do not lie side by side: each is moved alone.
void move_words(Wave& wave, const Inst& inst, const LaneAccess& op, WaveAddresses& at) {
  if (op.atomic != Atomic::none || op.to_lds)
    throw Stop("an atomic or direct-to-LDS access of several words of a swizzled buffer, which the executor does not model");
  Inst part = inst;
  LaneAccess word = op;
  word.bytes = 4;
  for (u32 w = 0; w < op.bytes / 4U; ++w) {
    WaveAddresses words;
    part.dst.reg = static_cast<std::uint16_t>(inst.dst.reg + w);
    part.src[1].reg = static_cast<std::uint16_t>(inst.src[1].reg + w);
    move_lanes(wave, part, word, 4 * w, words);
    if (w == 0) at = words;
  }
}

void access(Wave& wave, const Inst& inst) {
  LaneAccess op = *inst.op->memory;
  op.to_lds = inst.fields.lds;
  WaveAddresses at;
  if (op.bytes > element_bytes && read_descriptor(wave, inst.fields.saddr).swizzled) move_words(wave, inst, op, at);
  else move_lanes(wave, inst, op, 0, at);
  note_in_flight(wave, inst, op, at);
}

template <LaneAccess op> inline constexpr LaneAccess stored = op;
template <LaneAccess op> constexpr Semantics line(std::string_view name) { return {name, &access, {}, &stored<op>}; }

#define KILN_ATOMIC(name, operation)                                                                                                       \
  line<LaneAccess{.bytes = 4, .atomic = Atomic::operation}>("buffer_atomic_" name),                                                        \
      line<LaneAccess{.bytes = 8, .atomic = Atomic::operation}>("buffer_atomic_" name "_x2")

constexpr Semantics table[] = {
    line<LaneAccess{.bytes = 1}>("buffer_load_ubyte"),
    line<LaneAccess{.bytes = 1, .sign = true}>("buffer_load_sbyte"),
    line<LaneAccess{.bytes = 2}>("buffer_load_ushort"),
    line<LaneAccess{.bytes = 2, .sign = true}>("buffer_load_sshort"),
    line<LaneAccess{.bytes = 4}>("buffer_load_dword"),
    line<LaneAccess{.bytes = 8}>("buffer_load_dwordx2"),
    line<LaneAccess{.bytes = 12}>("buffer_load_dwordx3"),
    line<LaneAccess{.bytes = 16}>("buffer_load_dwordx4"),
    line<LaneAccess{.bytes = 1, .half = 1}>("buffer_load_ubyte_d16"),
    line<LaneAccess{.bytes = 1, .half = 2}>("buffer_load_ubyte_d16_hi"),
    line<LaneAccess{.bytes = 1, .sign = true, .half = 1}>("buffer_load_sbyte_d16"),
    line<LaneAccess{.bytes = 1, .sign = true, .half = 2}>("buffer_load_sbyte_d16_hi"),
    line<LaneAccess{.bytes = 2, .half = 1}>("buffer_load_short_d16"),
    line<LaneAccess{.bytes = 2, .half = 2}>("buffer_load_short_d16_hi"),
    line<LaneAccess{.bytes = 1, .store = true}>("buffer_store_byte"),
    line<LaneAccess{.bytes = 1, .store = true, .half = 2}>("buffer_store_byte_d16_hi"),
    line<LaneAccess{.bytes = 2, .store = true}>("buffer_store_short"),
    line<LaneAccess{.bytes = 2, .store = true, .half = 2}>("buffer_store_short_d16_hi"),
    line<LaneAccess{.bytes = 4, .store = true}>("buffer_store_dword"),
    line<LaneAccess{.bytes = 8, .store = true}>("buffer_store_dwordx2"),
    line<LaneAccess{.bytes = 12, .store = true}>("buffer_store_dwordx3"),
    line<LaneAccess{.bytes = 16, .store = true}>("buffer_store_dwordx4"),
    KILN_EACH_ATOMIC(KILN_ATOMIC),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::add_f32}>("buffer_atomic_add_f32"),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::pk_add_f16}>("buffer_atomic_pk_add_f16"),
    line<LaneAccess{.bytes = 4, .atomic = Atomic::pk_add_bf16}>("buffer_atomic_pk_add_bf16"),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::add_f64}>("buffer_atomic_add_f64"),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::min_f64}>("buffer_atomic_min_f64"),
    line<LaneAccess{.bytes = 8, .atomic = Atomic::max_f64}>("buffer_atomic_max_f64"),
};

} // namespace

SemanticsTable buffer_table() { return table; }

} // namespace kiln::exec
