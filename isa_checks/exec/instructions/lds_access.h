// The steps that LDS instructions share: addresses, reading for the lanes of a wave, and the wait counter.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"
#include <string_view>

namespace kiln::exec {

// The LDS bytes of one lane's access; null, and a defect that begins with `what`, when they are not all inside the workgroup's allocation.
std::byte* lds_bytes(Wave& wave, const Inst& inst, std::uint64_t address, unsigned bytes, int lane, std::string_view what = {});
// Every lane's address register plus `offset`; the lanes of EXEC access.
WaveAddresses lds_addresses(Wave& wave, const Inst& inst, std::uint32_t offset);
// Reads op.bytes per lane into the registers from `reg` on. Reports what lies outside LDS, and reads 0 there;
// counts bank passes.
void read_lds_lanes(Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at, std::uint16_t reg);
// Counts an instruction as issued.
void issue_lds(Wave& wave, const Inst& inst);

} // namespace kiln::exec
