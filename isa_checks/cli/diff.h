// diff: two builds of the same kernels, compared by what costs time.
#pragma once
#include "isa_checks/cli/scan.h"
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa::cli {

// One number of a kernel. `worse`: +1 when more is worse, -1 when less is.
struct Metric {
  std::string_view name;
  std::string_view unit;
  int worse;
  double threshold; // percent of change in the bad direction that is accepted; negative: never a regression
  double (*value)(const ScannedKernel& kernel);
  std::string_view meaning;
};
std::span<const Metric> metrics();

// Metric name -> percent, for those that shall not have their own threshold. Negative: never a regression.
using Thresholds = std::map<std::string, double, std::less<>>;
// "hot_instructions=5" or "vgprs=off". Throws Error for names and numbers that there are not.
void add_threshold(Thresholds& thresholds, const std::string& text);

struct MetricChange {
  const Metric* metric = nullptr;
  double before = 0, after = 0;
  bool regression = false;
};

struct KernelChange {
  std::string kernel, arch;
  bool added = false, removed = false;       // then nothing else is filled
  std::vector<MetricChange> metrics = {};    // those that changed
  std::vector<Finding> came = {}, went = {}; // findings, counted by rule: the later ones of a rule are those that came or went
  bool regression() const;                   // a metric's, or a finding that came
  bool empty() const { return !added && !removed && metrics.empty() && came.empty() && went.empty(); }
};

// Kernels are paired by name and architecture; of those that share both, the nth with the nth. Regressions first, then in
// the order of `after`, then what was removed. Unchanged kernels are left out.
std::vector<KernelChange> compare(const std::vector<ScannedKernel>& before, const std::vector<ScannedKernel>& after,
                                  const Thresholds& thresholds);

} // namespace kiln::isa::cli
