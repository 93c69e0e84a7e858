// Counting the bank passes of executed LDS accesses.
#include "isa_checks/exec/instructions/lds_banks.h"
#include "isa_checks/exec/machine/measurements.h"
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/target/lds_banks.h"
#include <bit>
#include <span>

namespace kiln::exec {

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

} // namespace kiln::exec
