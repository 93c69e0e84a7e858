// Comparing the wait analysis with an execution.
#include "tests/exec/wait_agreement.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::testing {

void WaitAgreement::add(const WaitAgreement& other) {
  compared += other.compared;
  exact += other.exact;
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
}

WaitAgreement compare_waits(const isa::Program& program, const isa::WaitAnalysis& waits, const exec::ExecResult& run) {
  WaitAgreement result;
  if (waits.approximate || !waits.complete) return result;
  for (const isa::WaitPoint& point : waits.points) {
    if (point.counter == isa::WaitCounter::expcnt) continue; // the executor has no GDS
    const std::uint64_t address = program.instructions[point.instruction].address;
    const auto ran = std::ranges::lower_bound(run.instructions, address, {}, &exec::InstructionProfile::address);
    if (ran == run.instructions.end() || ran->address != address) {
      result.wrong.push_back(fmt::format("{} {:#x}: not measured", program.kernel, address));
      continue;
    }
    if (ran->counters.executed == 0) continue;
    const bool vm = point.counter == isa::WaitCounter::vmcnt;
    const int least = vm ? ran->counters.least_vm : ran->counters.least_lgkm;
    const int most = vm ? ran->counters.most_vm : ran->counters.most_lgkm;
    ++result.compared;
    result.exact += point.least_outstanding == point.most_outstanding;
    if (point.least_outstanding > least || most > point.most_outstanding)
      result.wrong.push_back(fmt::format("{} {:#x} {}: {} to {} operations of {} were outstanding, the analysis says {} to {}",
                                         program.kernel, address, ran->text, least, most, name_of(point.counter),
                                         point.least_outstanding, point.most_outstanding));
  }
  return result;
}

WaitAgreement compare_waits(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run) {
  isa::Disassembler disassembler(object.target());
  const isa::Program program = isa::build_program(object.kernel(kernel), disassembler);
  return compare_waits(program, isa::analyze_waits(program), run);
}

} // namespace kiln::testing
