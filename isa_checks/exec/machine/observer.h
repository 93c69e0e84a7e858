// Observer: is told what the waves of a run execute, in the order in which they do.
#pragma once
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/target/lds_banks.h"
#include <cstdint>

namespace kiln::exec {

class Observer {
public:
  virtual ~Observer() = default;
  // Before an instruction; the wave knows its workgroup (wave.group->id) and its number in it (wave.index).
  virtual void execute(const Wave& wave, const Inst& inst) = 0;
  // What the instruction accesses: device memory or LDS by lanes, or device memory by the scalar unit.
  virtual void access(const Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at) = 0;
  virtual void access_lds(const Wave& wave, const Inst& inst, const LaneAccess& op, const WaveAddresses& at,
                          const isa::BankPasses& passes) = 0;
  virtual void access_scalar(const Wave& wave, const Inst& inst, std::uint64_t address, std::uint32_t bytes) = 0;
};

} // namespace kiln::exec
