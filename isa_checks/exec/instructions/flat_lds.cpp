// flat_ instructions whose addresses stand for LDS.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/instructions/lds_access.h"
#include "isa_checks/exec/sanitisers/lds_tracking.h"
#include <bit>
#include <cstring>

namespace kiln::exec {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

u64 word(const u32* row, int lane, int bytes) {
  return bytes == 8 ? row[lane] | static_cast<u64>(row[lane_count + lane]) << 32 : row[lane];
}

void load_one(const std::byte* from, u32* to, int lane, const LaneAccess& op) {
  u32 value[4] = {};
  if (from != nullptr) std::memcpy(value, from, op.bytes);
  if (op.sign && op.bytes == 1) value[0] = static_cast<u32>(static_cast<std::int8_t>(value[0]));
  if (op.sign && op.bytes == 2) value[0] = static_cast<u32>(static_cast<std::int16_t>(value[0]));
  to[lane] = in_half(to[lane], value[0], op);
  for (int w = 1; w < op.bytes / 4; ++w) to[w * lane_count + lane] = value[w];
}

void store_one(std::byte* to, const u32* from, int lane, const LaneAccess& op) {
  u32 value[4] = {};
  value[0] = op.half == 2 ? from[lane] >> 16 : from[lane];
  for (int w = 1; w < op.bytes / 4; ++w) value[w] = from[w * lane_count + lane];
  if (to != nullptr) std::memcpy(to, value, op.bytes);
}

void atomic_one(Wave& wave, const Inst& inst, const LaneAccess& op, std::byte* host, int lane) {
  const u32* const data = wave.lanes(inst.src[1].reg);
  u64 old = 0;
  if (host != nullptr) {
    std::memcpy(&old, host, op.bytes);
    const u64 first = word(data, lane, op.bytes);
    const u64 compare = op.atomic == Atomic::cmpswap ? word(data + op.bytes / 4 * lane_count, lane, op.bytes) : 0;
    const u64 now = apply_atomic(op.atomic, op.bytes, old, first, compare);
    std::memcpy(host, &now, op.bytes);
  }
  if (!inst.fields.sc0) return; // sc0: returns the old value
  u32* const to = wave.lanes(inst.dst.reg);
  to[lane] = static_cast<u32>(old);
  if (op.bytes == 8) to[lane_count + lane] = static_cast<u32>(old >> 32);
}

} // namespace

void flat_lds_access(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) {
  const bool atomic = op.atomic != Atomic::none;
  if (atomic) track_lds_atomic(wave, inst, op, at);
  else if (op.store) track_lds_write(wave, inst, op, at, inst.src[1].reg);
  else track_lds_read(wave, inst, op, at, inst.dst.reg);
  for (u64 m = at.mask; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    std::byte* const host = lds_bytes(wave, inst, at.lane[i], op.bytes, i, "a flat access of ");
    if (atomic) atomic_one(wave, inst, op, host, i);
    else if (op.store) store_one(host, wave.lanes(inst.src[1].reg), i, op);
    else load_one(host, wave.lanes(inst.dst.reg), i, op);
  }
}

} // namespace kiln::exec
