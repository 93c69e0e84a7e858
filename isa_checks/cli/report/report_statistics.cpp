// How many findings each rule has, and in how many kernels.
#include "isa_checks/cli/report/report.h"
#include "isa_checks/verdict/rule.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

namespace kiln::isa::cli {
namespace {

class StatisticsReport : public ReportWriter {
public:
  StatisticsReport(std::ostream& out, bool rules) : out_(out), rules_(rules) {}

  void kernel(const ScannedKernel& kernel) override {
    std::set<std::pair<std::string, Severity>> here;
    for (const Finding& finding : kernel.findings) {
      counts_.add(finding);
      Line& line = lines_[{finding.rule, finding.severity}];
      ++line.findings;
      line.places += 1 + finding.others.size();
      here.emplace(finding.rule, finding.severity);
    }
    for (const auto& key : here) ++lines_[key].kernels;
  }

  void end(const ScanTotals& totals) override {
    if (rules_ && !lines_.empty()) table();
    out_ << summary_line(totals, counts_) << '\n';
  }

private:
  struct Line {
    std::size_t findings = 0, kernels = 0, places = 0;
  };

  void table() const {
    std::vector<std::pair<std::pair<std::string, Severity>, Line>> sorted(lines_.begin(), lines_.end());
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.findings > b.second.findings; });
    out_ << fmt::format("{:>9} {:>9} {:>9}  {:<8} {:<8} {}\n", "findings", "kernels", "places", "severity", "rule", "");
    for (const auto& [key, line] : sorted) {
      const Rule* const rule = find_rule(key.first);
      out_ << fmt::format("{:>9} {:>9} {:>9}  {:<8} {:<8} {}\n", line.findings, line.kernels, line.places, to_string(key.second), key.first,
                          rule ? rule->summary : "an expectation of the kernel is not met");
    }
  }

  std::ostream& out_;
  bool rules_;
  SeverityCounts counts_;
  std::map<std::pair<std::string, Severity>, Line> lines_;
};

} // namespace

std::unique_ptr<ReportWriter> make_statistics_report(std::ostream& out) { return std::make_unique<StatisticsReport>(out, true); }
std::unique_ptr<ReportWriter> make_summary_report(std::ostream& out) { return std::make_unique<StatisticsReport>(out, false); }

} // namespace kiln::isa::cli
