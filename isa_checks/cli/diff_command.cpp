// isa_lint diff OLD NEW: what changed, and whether it got worse.
#include "isa_checks/cli/diff.h"
#include "isa_checks/cli/report/report.h"
#include "isa_checks/cli/scan_options.h"
#include "isa_checks/cli/terminal.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string metric_list() {
  std::string text = "\nmetrics, and what change for the worse is a regression:\n";
  for (const Metric& m : metrics())
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
