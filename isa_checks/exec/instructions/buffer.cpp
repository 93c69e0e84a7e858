// buffer_ instructions: addresses through a resource descriptor, with its range check.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/machine/stop.h"
#include <algorithm>

namespace kiln::exec {
namespace {

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
  device_access(wave, inst, op, at);
  if (fills_registers(inst, op)) zero_lanes(wave, inst, op, out_of_range);
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

} // namespace

void buffer_access(Wave& wave, const Inst& inst) {
  LaneAccess op = *inst.op->memory;
  op.to_lds = inst.fields.lds;
  WaveAddresses at;
  if (op.bytes > element_bytes && read_descriptor(wave, inst.fields.saddr).swizzled) move_words(wave, inst, op, at);
  else move_lanes(wave, inst, op, 0, at);
  note_in_flight(wave, inst, op, at);
}

} // namespace kiln::exec
