// flat_ instructions whose addresses stand for LDS.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/instructions/lds_access.h"
#include "isa_checks/exec/sanitisers/lds_tracking.h"
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

} // namespace

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

} // namespace kiln::exec
