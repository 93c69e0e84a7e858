// isa_lint diff OLD NEW: what changed, and whether it got worse.
#include "isa_checks/cli/report/report.h"
#include "isa_checks/cli/scan.h"
#include "isa_checks/cli/scan_options.h"
#include "isa_checks/cli/terminal.h"
#include "isa_checks/error.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace kiln::isa::cli {
namespace {

using Json = nlohmann::ordered_json;

// One number of a kernel. `worse`: +1 when more is worse, -1 when less is.
struct Metric {
  std::string_view name;
  std::string_view unit;
  int worse;
  double threshold; // percent of change in the bad direction that is accepted; negative: never a regression
  double (*value)(const ScannedKernel& kernel);
  std::string_view meaning;
};

// Metric name -> percent, for those that shall not have their own threshold. Negative: never a regression.
using Thresholds = std::map<std::string, double, std::less<>>;

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
  // A metric's, or a finding that came.
  bool regression() const { return !came.empty() || std::ranges::any_of(metrics, &MetricChange::regression); }
  bool empty() const { return !added && !removed && metrics.empty() && came.empty() && went.empty(); }
};

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
  for (const auto& [width, number] : facts.widths(spaces, {MemoryDirection::load, MemoryDirection::store})) {
    bytes += static_cast<double>(width) * number;
    count += number;
  }
  return count > 0 ? bytes / count : 0;
}

constexpr double never = -1;

constexpr Metric metrics[] = {
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
  for (const Metric& metric : metrics) {
    const double a = metric.value(before), b = metric.value(after);
    const auto said = thresholds.find(metric.name);
    const double percent = said == thresholds.end() ? metric.threshold : said->second;
    if (a != b) change.metrics.push_back({&metric, a, b, exceeds(metric, a, b, percent)});
  }
  change.came = beyond(after.findings, before.findings);
  change.went = beyond(before.findings, after.findings);
  return change;
}

// "hot_instructions=5" or "vgprs=off". Throws Error for names and numbers that there are not.
void add_threshold(Thresholds& thresholds, const std::string& text) {
  const std::size_t at = text.find('=');
  const std::string name = text.substr(0, at), value = at == text.npos ? "" : text.substr(at + 1);
  if (std::ranges::find(metrics, name, &Metric::name) == std::end(metrics)) {
    std::string known;
    for (const Metric& metric : metrics) known += fmt::format("{}{}", known.empty() ? "" : ", ", metric.name);
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

// Kernels are paired by name and architecture; of those that share both, the nth with the nth. Regressions first, then in
// the order of `after`, then what was removed. Unchanged kernels are left out.
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

std::string metric_list() {
  std::string text = "\nmetrics, and what change for the worse is a regression:\n";
  for (const Metric& m : metrics)
    text += fmt::format("  {:<18} {:<12} {}\n", m.name,
                        m.threshold < 0    ? "never"
                        : m.threshold == 0 ? "any"
                                           : fmt::format("over {:g} %", m.threshold),
                        m.meaning);
  return text + "A finding that came is a regression too.\n\nexit codes: 0 no regression, 1 regressions, 2 bad usage or "
                "unreadable input";
}

std::string percent(double before, double after) {
  return before == 0 ? std::string() : fmt::format(" ({:+.1f} %)", 100 * (after - before) / before);
}

class Diff : public Command {
public:
  Diff() : Command("isa_lint diff", "What changed between two builds of the same kernels, paired by name and architecture") {
    app.add_option("old", old_, "The build before: a file or folder as for isa_lint")->required()->type_name("OLD");
    app.add_option("new", new_, "The build after")->required()->type_name("NEW");
    add_input_options(app, arguments_);
    add_rule_options(app, arguments_);
    app.add_option("--threshold", thresholds_text_, "Accept a change for the worse of METRIC up to PERCENT; 'off' for any")
        ->type_name("METRIC=PERCENT")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_flag("--json", json_, "One JSON object");
    app.footer(metric_list());
  }

  int run(Streams& streams) override {
    Thresholds thresholds;
    for (const std::string& text : thresholds_text_) add_threshold(thresholds, text);
    std::size_t errors = 0;
    const auto kernels = [&](const std::string& path) {
      std::vector<ScannedKernel> result;
      ScanSink sink;
      sink.kernel = [&](ScannedKernel&& kernel) { result.push_back(std::move(kernel)); };
      errors += scan_with_progress(to_scan(arguments_, {path}), sink, streams).errors;
      return result;
    };
    const auto before = kernels(old_), after = kernels(new_);
    if (errors > 0) return unusable;
    const std::vector<KernelChange> changes = compare(before, after, thresholds);
    const auto regressions = static_cast<std::size_t>(std::ranges::count_if(changes, &KernelChange::regression));
    if (json_) print_json(streams.out, changes, regressions);
    else print_text(streams, changes, after.size(), regressions);
    return regressions > 0 ? found : clean;
  }

private:
  static void print_text(Streams& streams, const std::vector<KernelChange>& changes, std::size_t kernels, std::size_t regressions) {
    const auto paint = [&](std::string_view code, const std::string& text) { return painted(streams.colour, code, text); };
    std::size_t added = 0, removed = 0;
    for (const KernelChange& c : changes) {
      added += c.added;
      removed += c.removed;
      if (c.added || c.removed) continue; // counted, and named in JSON
      streams.out << fmt::format("{} ({})\n", paint("1", printable(short_name(readable_name(c.kernel)))), c.arch);
      for (const MetricChange& m : c.metrics) {
        const bool better = (m.after - m.before) * m.metric->worse < 0;
        const std::string line = fmt::format("  {} {:<18} {:g} -> {:g}{}{}", m.regression ? '!' : ' ', m.metric->name, m.before, m.after,
                                             m.metric->unit.empty() ? "" : fmt::format(" {}", m.metric->unit), percent(m.before, m.after));
        streams.out << (m.regression ? paint("31", line) : better ? paint("32", line) : line) << '\n';
      }
      for (const Finding& f : c.came)
        streams.out << paint("31", fmt::format("  ! came: {} {}: {}", f.rule, to_string(f.severity), f.message)) << '\n';
      for (const Finding& f : c.went)
        streams.out << paint("32", fmt::format("    went: {} {}: {}", f.rule, to_string(f.severity), f.message)) << '\n';
    }
    streams.out << fmt::format("{} of {} changed, {} got worse", changes.size() - added - removed, plural(kernels - added, "kernel"),
                               regressions);
    if (added + removed > 0) streams.out << fmt::format("; {} new, {} gone", added, removed);
    streams.out << '\n';
  }

  static Json rules_of(const std::vector<Finding>& findings) {
    Json list = Json::array();
    for (const Finding& f : findings) list.push_back({{"rule", f.rule}, {"severity", to_string(f.severity)}, {"message", f.message}});
    return list;
  }

  static void print_json(std::ostream& out, const std::vector<KernelChange>& changes, std::size_t regressions) {
    Json json{{"version", 1}, {"regressions", regressions}, {"kernels", Json::array()}};
    for (const KernelChange& c : changes) {
      Json kernel{{"kernel", c.kernel}, {"arch", c.arch}, {"added", c.added}, {"removed", c.removed}, {"regression", c.regression()}};
      kernel["metrics"] = Json::object();
      for (const MetricChange& m : c.metrics)
        kernel["metrics"][std::string(m.metric->name)] = {{"before", m.before}, {"after", m.after}, {"regression", m.regression}};
      kernel["came"] = rules_of(c.came);
      kernel["went"] = rules_of(c.went);
      json["kernels"].push_back(std::move(kernel));
    }
    out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  }

  ScanArguments arguments_;
  std::string old_, new_;
  std::vector<std::string> thresholds_text_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<Command> make_diff() { return std::make_unique<Diff>(); }

} // namespace kiln::isa::cli
