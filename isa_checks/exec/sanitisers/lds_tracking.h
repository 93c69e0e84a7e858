// What LDS instructions tell the sanitisers: races, and which register and LDS bytes are written.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"

namespace kiln::exec {

// `reg` is the first data register, of the load's destination or of the store's source. All do nothing when sanitisers are off.
void track_lds_read(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg);
void track_lds_write(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg);
void track_lds_atomic(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at);
// Bytes that a direct-to-LDS load writes.
void track_lds_fill(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane);

} // namespace kiln::exec
