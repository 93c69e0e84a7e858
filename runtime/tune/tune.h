// tune: the quickest schedule of a kernel, by measuring or predicting its candidates within a budget.
#pragma once
#include "runtime/stopwatch.h"
#include "runtime/tune/try_schedule.h"
#include "runtime/tune/tuning_table.h"
#include <functional>
#include <optional>
#include <vector>

namespace kiln {

// Microseconds of a launch with this schedule; nothing when its code breaks the ISA contract.
using TimeOfSchedule = std::function<std::optional<double>(const Plan& plan, const Schedule& schedule)>;

// By prediction, at nominal_sizes.
TimeOfSchedule predicted_time(const Target& target, const timing::Chip& chip, timing::CacheState cache, const CompileOptions& options);

struct TuneOptions {
  const timing::Chip* chip = nullptr;
  TimeOfSchedule time;
  std::string how;        // TuningEntry::how
  std::string compiler;   // TuningEntry::compiler
  int max_candidates = 0; // the first ones by the cost model; 0: all. Those of other methods come on top
  Allowed allowed;        // what changes results
  double seconds = 0;     // of the whole run; 0: as long as it takes
};

// One run over several kernels, with one budget of seconds.
class Tuner {
public:
  explicit Tuner(TuneOptions options) : options_(std::move(options)) {}
  // The entry of the quickest candidate that keeps its contract. Nothing when the seconds are over before all candidates were tried:
  // half a comparison is none. Throws RejectedError when no candidate keeps its contract, and what the stages throw.
  std::optional<TuningEntry> tune(const KernelSpec& spec, const Target& target) const;
  bool is_over() const { return options_.seconds > 0 && watch_.milliseconds() > 1000 * options_.seconds; }
  // Whether `entry` is what tune() would find again: same shape and bounds, chip, way and versions.
  bool has(const TuningEntry& entry, const KernelSpec& spec, const Target& target) const;

private:
  TuneOptions options_;
  Stopwatch watch_;
};

} // namespace kiln
