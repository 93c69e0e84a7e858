// explain: why a kernel has its schedule: the candidates beside each other.
#pragma once
#include "runtime/tune/try_schedule.h"
#include <string>
#include <vector>

namespace kiln {

struct ExplainedCandidate {
  std::vector<std::string> settings;
  std::string why;              // the schedule's own line
  Cost cost;                    // the closed form, at the sizes that were asked for
  double cost_us = 0;           // its total, the geometric mean over the sizes
  double predicted_us = 0;      // of the simulation; 0 when the contract is broken, or the launch too long
  std::string bound_by;         // the longest phase of the prediction, and what bounds it
  int vgprs = 0, lds_bytes = 0; // of the code
  int workgroups = 0;           // of the launch at the last size
  std::string contract;         // "holds", or the first expectation that does not
  std::string too_long;         // why it is not simulated though the contract holds
};

struct Explanation {
  std::string kernel, arch, chip, cache, sizes;
  std::vector<ExplainedCandidate> candidates; // in the order of the closed form
  std::size_t chosen = 0;                     // the first whose contract holds; candidates.size(): none does
  std::size_t quickest = 0;                   // by the simulation, of those that are simulated; else the chosen one
  std::string batch_invariance;               // of the chosen one: "holds: ...", or "does not hold: ..."
};

Explanation explain(const KernelSpec& spec, const Target& target, const timing::Chip& chip, timing::CacheState cache,
                    const std::vector<RunTimeSizes>& sizes, const CompileOptions& options);

// Whether the bits of a row depend on its own inputs alone, by the order of sums: "holds: ...", or "does not hold: ..." with what
// --batch-invariant would choose.
std::string batch_invariance(const Plan& plan, const Schedule& schedule, const Target& target);

std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);
std::string to_html(const Explanation& explanation);

} // namespace kiln
