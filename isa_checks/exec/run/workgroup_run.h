// WorkgroupRun: one workgroup on its way, that can be left and taken up again.
#pragma once
#include "isa_checks/exec/machine/wait_counts.h"
#include "isa_checks/exec/run/dispatch.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/exec/run/program.h"
#include "isa_checks/exec/sanitisers/definedness.h"
#include "isa_checks/exec/sanitisers/flag_reads.h"
#include "isa_checks/exec/sanitisers/hazards.h"
#include "isa_checks/exec/sanitisers/lds_shadow.h"
#include <array>
#include <atomic>
#include <span>
#include <string>
#include <vector>

namespace kiln::exec {

// What all workgroups of an execution share.
struct RunContext {
  const ExecProgram& program;
  const Dispatch& dispatch;
  const ExecOptions& options;
  Memory& memory;
  std::span<const isa::HazardTraits> hazards; // by instruction; empty: not checked
  std::vector<FlagUse> flag_uses;
  bool direct_loads = false; // the program has direct-to-LDS loads
  std::atomic<bool>& stop;   // set by whoever ends the run
};

struct Xorshift { // xorshift64*
  std::uint64_t state = 1;
  std::uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
  }
};

class WorkgroupRun {
public:
  // Defects and counts (by instruction index; null: off) belong to the host thread; `slot` chooses the private memory.
  WorkgroupRun(const RunContext& context, Defects& defects, InstCounters* counters, int slot);

  void start(const std::array<std::uint32_t, 3>& id, std::uint64_t number);
  // Lets its waves execute about so many instructions. True when all have ended or the run was stopped.
  bool advance(std::uint64_t instructions);
  // Whether, in the latest advance, every wave that ran only read one place again and again, and did nothing that others see.
  bool waits() const { return waits_; }
  std::uint64_t effects() const; // that others can see, since the start
  void add_totals(WaveTotals& totals) const;
  // Ends the run with a defect of the workgroup's first wave that has not ended. The message is followed by positions().
  void stop_with(DefectKind kind, const std::string& message);
  std::string positions() const; // where each wave stands

private:
  void run_slice(std::size_t wave, std::uint64_t length);
  template <bool checked> void run_instructions(Wave& wave, ClassCounts& counts, std::uint64_t length);
  void release_barrier();
  void stop_at(DefectKind kind, const Wave& wave, std::string message);

  const RunContext& context_;
  Defects& defects_;
  int slot_;
  Workgroup group_;
  std::vector<Wave> waves_;
  std::vector<InFlight> in_flight_;
  std::vector<HazardWindow> hazards_;
  std::vector<RegisterShadow> shadows_; // empty when unwritten values are not followed
  std::vector<ClassCounts> counts_;
  LdsShadow lds_shadow_;
  Xorshift random_;
  std::uint64_t barriers_ = 0;
  bool waits_ = false;
};

} // namespace kiln::exec
