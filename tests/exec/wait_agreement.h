// What the wait analysis says of every s_waitcnt, against what an execution counted there.
#pragma once
#include "isa_checks/code_object.h"
#include "isa_checks/exec/execute.h"
#include "isa_checks/waits.h"
#include <string>
#include <string_view>
#include <vector>

namespace kiln::testing {

struct WaitAgreement {
  int compared = 0, exact = 0;    // counters of waits that were executed; those for which the analysis gives one number
  std::vector<std::string> wrong; // one line for each disagreement
  void add(const WaitAgreement& other);
};

// The operations outstanding before each wait lie between the least and the most that the analysis says, vmcnt and lgkmcnt
// alike. Nothing is compared of an analysis that is approximate or incomplete. `run` must have been measured.
WaitAgreement compare_waits(const isa::Program& program, const isa::WaitAnalysis& waits, const exec::ExecResult& run);
WaitAgreement compare_waits(const isa::CodeObject& object, std::string_view kernel, const exec::ExecResult& run);

} // namespace kiln::testing
