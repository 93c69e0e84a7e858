// Comparing two scans.
#include "isa_checks/cli/diff.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <tuple>

namespace kiln::isa::cli {
namespace {

// Over the innermost loops; a kernel without loops counts as one.
double hot_instructions(const ScannedKernel& k) {
  double sum = 0;
  for (const LoopDigest& loop : k.loops)
    if (loop.innermost) sum += loop.instructions;
  return k.loops.empty() ? k.facts.instructions : sum;
}

// Instructions of the innermost loops for each unit of their work; 0 when they do none of it.
double per_work(const ScannedKernel& k, std::uint64_t LoopDigest::* work, double unit) {
  double instructions = 0, sum = 0;
  for (const LoopDigest& loop : k.loops)
    if (loop.innermost && loop.*work > 0) {
      instructions += loop.instructions;
      sum += static_cast<double>(loop.*work);
    }
  return sum > 0 ? instructions * unit / sum : 0;
}
double per_kib(const ScannedKernel& k) { return per_work(k, &LoopDigest::bytes_moved, 1024); }
double per_operation(const ScannedKernel& k) { return per_work(k, &LoopDigest::matrix_operations, 1e6); }
// What a kernel does must not decide: more instructions are worse only where neither bytes nor operations tell how much they do.
double without_work(const ScannedKernel& k) { return per_kib(k) > 0 || per_operation(k) > 0 ? 0 : hot_instructions(k); }

double loop_drains(const ScannedKernel& k) {
  double sum = 0;
  for (const LoopDigest& loop : k.loops)
    if (loop.innermost && loop.loads > 0) sum += loop.drains;
  return sum;
}

// The least of the innermost loops that load: of what a wave keeps in flight at its worst point, or when the next repetition begins.
template <std::uint32_t LoopDigest::* bytes> double min_bytes(const ScannedKernel& k) {
  double least = -1;
  for (const LoopDigest& loop : k.loops)
    if (loop.innermost && loop.loads > 0 && (least < 0 || loop.*bytes < least)) least = loop.*bytes;
  return std::max(least, 0.0);
}

// Bytes that one lane moves with one instruction, on average.
double mean_width(const KernelFacts& facts, std::initializer_list<MemorySpace> spaces) {
  double bytes = 0, count = 0;
  for (const auto& [op, number] : facts.memory)
    if (op.direction != MemoryDirection::atomic && std::ranges::find(spaces, op.space) != spaces.end()) {
      bytes += static_cast<double>(op.bytes) * number;
      count += number;
    }
  return count > 0 ? bytes / count : 0;
}

constexpr double never = -1;

constexpr Metric table[] = {
    {"waves_per_simd", "", -1, 0, [](const ScannedKernel& k) { return k.facts.occupancy.waves_per_simd; }, "occupancy"},
    {"vgprs", "", 1, never, [](const ScannedKernel& k) { return double(k.facts.resources.vgprs); }, "vector registers"},
    {"sgprs", "", 1, never, [](const ScannedKernel& k) { return double(k.facts.resources.sgprs); }, "scalar registers"},
    {"lds_bytes", "B", 1, never, [](const ScannedKernel& k) { return double(k.facts.resources.lds_bytes); }, "static LDS of a workgroup"},
    {"scratch_bytes", "B", 1, 0, [](const ScannedKernel& k) { return double(k.facts.resources.scratch_bytes); }, "scratch of a lane"},
    {"vgpr_spills", "", 1, 0, [](const ScannedKernel& k) { return double(k.facts.resources.vgpr_spills); }, "spilled vector registers"},
    {"sgpr_spills", "", 1, 0, [](const ScannedKernel& k) { return double(k.facts.resources.sgpr_spills); }, "spilled scalar registers"},
    {"instructions", "", 1, never, [](const ScannedKernel& k) { return double(k.facts.instructions); }, "instructions of the kernel"},
    {"hot_instructions", "", 1, never, hot_instructions, "instructions of the innermost loops (without loops: of the kernel)"},
    {"instructions_per_kib", "", 1, 10, per_kib, "of innermost loops, for each KiB of device memory that a wave moves"},
    {"instructions_per_operation", "", 1, 10, per_operation, "of innermost loops, for a million matrix operations"},
    {"other_hot_instructions", "", 1, 10, without_work, "hot_instructions of kernels for which neither of the two above exists"},
    {"global_width", "B", -1, 0,
     [](const ScannedKernel& k) { return mean_width(k.facts, {MemorySpace::global, MemorySpace::buffer, MemorySpace::flat}); },
     "bytes a lane of global, buffer and flat loads and stores, on average"},
    {"lds_width", "B", -1, 0, [](const ScannedKernel& k) { return mean_width(k.facts, {MemorySpace::lds}); },
     "bytes a lane of LDS reads and writes, on average"},
    {"waits", "", 1, never, [](const ScannedKernel& k) { return double(k.facts.count(InstructionClass::wait)); }, "wait instructions"},
    {"barriers", "", 1, never, [](const ScannedKernel& k) { return double(k.facts.count(InstructionClass::barrier)); }, "barriers"},
    {"bytes_carried", "B", -1, 10, min_bytes<&LoopDigest::back_bytes>,
     "bytes of loads that a wave has in flight over the back edge, least of the same loops"},
    {"loop_drains", "", 1, 0, loop_drains, "waits for vmcnt(0) in innermost loops that load"},
    {"bytes_in_flight", "B", -1, 10, min_bytes<&LoopDigest::min_bytes_in_flight>,
     "bytes of loads that a wave keeps in flight, least of the innermost loops that load"},
};

// Counting beats 0 by any percentage. A kernel that has no more accesses of a kind has no narrower ones.
bool exceeds(const Metric& metric, double before, double after, double percent) {
  if (metric.name.ends_with("_width") && after == 0) return false;
  const double growth = (after - before) * metric.worse;
  return percent >= 0 && growth > 0 && growth * 100 > percent * before;
}

using Key = std::tuple<std::string, std::string, int>; // kernel, architecture, how many before it share both

std::map<Key, const ScannedKernel*> by_key(const std::vector<ScannedKernel>& kernels) {
  std::map<Key, const ScannedKernel*> result;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (const ScannedKernel& k : kernels) result[{k.facts.kernel, k.facts.arch, seen[{k.facts.kernel, k.facts.arch}]++}] = &k;
  return result;
}

// Those of `list` beyond as many of the same rule as `other` has.
std::vector<Finding> beyond(const std::vector<Finding>& list, const std::vector<Finding>& other) {
  std::map<std::string, std::ptrdiff_t> left;
  for (const Finding& f : other) ++left[f.rule];
  std::vector<Finding> result;
  for (const Finding& f : list)
    if (--left[f.rule] < 0) result.push_back(f);
  return result;
}

KernelChange changes(const ScannedKernel& before, const ScannedKernel& after, const Thresholds& thresholds) {
  KernelChange change{.kernel = after.facts.kernel, .arch = after.facts.arch};
  for (const Metric& metric : table) {
    const double a = metric.value(before), b = metric.value(after);
    const auto said = thresholds.find(metric.name);
    const double percent = said == thresholds.end() ? metric.threshold : said->second;
    if (a != b) change.metrics.push_back({&metric, a, b, exceeds(metric, a, b, percent)});
  }
  change.came = beyond(after.findings, before.findings);
  change.went = beyond(before.findings, after.findings);
  return change;
}

} // namespace

std::span<const Metric> metrics() { return table; }

void add_threshold(Thresholds& thresholds, const std::string& text) {
  const std::size_t at = text.find('=');
  const std::string name = text.substr(0, at), value = at == text.npos ? "" : text.substr(at + 1);
  if (std::ranges::find(table, name, &Metric::name) == std::end(table)) {
    std::string known;
    for (const Metric& metric : table) known += fmt::format("{}{}", known.empty() ? "" : ", ", metric.name);
    throw Error("--threshold " + text, "there is no metric '" + name + "'", "use one of " + known);
  }
  double percent = -1;
  if (value != "off") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), percent);
    if (error != std::errc() || end != value.data() + value.size() || !(percent >= 0))
      throw Error("--threshold " + text, "'" + value + "' is no percentage", "write NAME=PERCENT, or NAME=off");
  }
  thresholds[name] = percent;
}

bool KernelChange::regression() const { return !came.empty() || std::ranges::any_of(metrics, &MetricChange::regression); }

std::vector<KernelChange> compare(const std::vector<ScannedKernel>& before, const std::vector<ScannedKernel>& after,
                                  const Thresholds& thresholds) {
  const auto old_kernels = by_key(before), new_kernels = by_key(after);
  std::vector<KernelChange> result;
  for (const auto& [key, kernel] : new_kernels) {
    const auto old = old_kernels.find(key);
    KernelChange change = old == old_kernels.end() ? KernelChange{.kernel = kernel->facts.kernel, .arch = kernel->facts.arch, .added = true}
                                                   : changes(*old->second, *kernel, thresholds);
    if (!change.empty()) result.push_back(std::move(change));
  }
  for (const auto& [key, kernel] : old_kernels)
    if (!new_kernels.contains(key)) result.push_back({.kernel = kernel->facts.kernel, .arch = kernel->facts.arch, .removed = true});
  std::ranges::stable_partition(result, &KernelChange::regression);
  return result;
}

} // namespace kiln::isa::cli
