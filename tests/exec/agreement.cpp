// Comparing static analyses with an execution.
#include "tests/exec/agreement.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::testing {

void WaitAgreement::add(const WaitAgreement& other) {
  compared += other.compared;
  exact += other.exact;
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
}

namespace {

// What an execution counted at an address; null for an instruction that was not measured.
const exec::InstructionProfile* profile_at(const exec::ExecResult& run, std::uint64_t address) {
  const auto ran = std::ranges::lower_bound(run.instructions, address, {}, &exec::InstructionProfile::address);
  return ran == run.instructions.end() || ran->address != address ? nullptr : &*ran;
}

} // namespace

BankAgreement compare_banks(const isa::KernelAnalysis& kernel, const exec::ExecResult& run) {
  BankAgreement result;
  for (const isa::MemoryAccess& access : kernel.memory.accesses) {
    if (!access.banks || !access.lanes_known) continue;
    const std::uint64_t address = kernel.instruction(access.instruction).address;
    const exec::InstructionProfile* const ran = profile_at(run, address);
    if (!ran || ran->counters.executed == 0) continue;
    ++result.compared;
    const auto passes = access.banks->needed * ran->counters.executed, ideal = access.banks->ideal * ran->counters.executed;
    if (ran->counters.lds_cycles != passes || ran->counters.lds_ideal != ideal)
      result.wrong.push_back(fmt::format("{} {:#x} {}: {} passes, {} without conflicts, the analysis says {} and {}", kernel.facts.kernel,
                                         address, ran->text, ran->counters.lds_cycles, ran->counters.lds_ideal, passes, ideal));
  }
  return result;
}

WaitAgreement compare_waits(const isa::Program& program, const isa::WaitAnalysis& waits, const exec::ExecResult& run) {
  WaitAgreement result;
  if (waits.approximate || !waits.complete) return result;
  for (const isa::WaitPoint& point : waits.points) {
    if (point.counter == isa::WaitCounter::expcnt) continue; // the executor has no GDS
    const std::uint64_t address = program.instructions[point.instruction].address;
    const exec::InstructionProfile* const ran = profile_at(run, address);
    if (!ran) {
      result.wrong.push_back(fmt::format("{} {:#x}: not measured", program.kernel, address));
      continue;
    }
    if (ran->counters.executed == 0) continue;
    const bool vm = point.counter == isa::WaitCounter::vmcnt;
    const int least = vm ? ran->counters.min_vm : ran->counters.min_lgkm;
    const int most = vm ? ran->counters.max_vm : ran->counters.max_lgkm;
    ++result.compared;
    result.exact += point.min_outstanding == point.max_outstanding;
    if (point.min_outstanding > least || most > point.max_outstanding)
      result.wrong.push_back(fmt::format("{} {:#x} {}: {} to {} operations of {} were outstanding, the analysis says {} to {}",
                                         program.kernel, address, ran->text, least, most, to_string(point.counter), point.min_outstanding,
                                         point.max_outstanding));
  }
  return result;
}

WaitAgreement compare_waits(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run) {
  isa::Disassembler disassembler(object.target());
  const isa::Program program = isa::build_program(object.kernel(kernel), disassembler);
  return compare_waits(program, isa::analyse_waits(program), run);
}

std::optional<std::string> first_disagreement(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run) {
  if (run.waves.waves == 0) return {};
  const isa::KernelAnalysis k = isa::analyse(object, object.kernel(kernel), {.source_lines = false});
  const WaitAgreement waits = compare_waits(k.program, k.waits, run);
  if (!waits.wrong.empty()) return waits.wrong.front();
  const BankAgreement banks = compare_banks(k, run);
  if (!banks.wrong.empty()) return banks.wrong.front();
  return {};
}

} // namespace kiln::testing
