// Reports: what a scan found, in the formats of isa_lint. They are written while the scan runs, in bounded memory.
#pragma once
#include "isa_checks/cli/scan.h"
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace kiln::isa::cli {

class ReportWriter {
public:
  ReportWriter() = default;
  ReportWriter(const ReportWriter&) = delete;
  ReportWriter& operator=(const ReportWriter&) = delete;
  virtual ~ReportWriter() = default;
  // What a report needs of the analysis itself; called by several threads. A report that needs nothing says so.
  virtual bool renders() const { return false; }
  virtual std::string render(const KernelAnalysis&, const ScannedKernel&) const { return {}; }
  virtual void kernel(const ScannedKernel& kernel) = 0;
  virtual void failed(const Error&) {}
  virtual void end(const ScanTotals& totals) = 0;
};

// For people: findings as they come, the reasons of a rule once, a summary.
std::unique_ptr<ReportWriter> make_text_report(std::ostream& out, bool colour);
// For people: findings of all kernels that are alike as one, by rule and line of source (without lines: by rule, instruction and
// message), errors first, then by the share of the kernels' clocks that they lie in.
std::unique_ptr<ReportWriter> make_group_report(std::ostream& out, bool colour);
// For people: a line for each rule that found something, and a summary; or the summary alone.
std::unique_ptr<ReportWriter> make_statistics_report(std::ostream& out);
std::unique_ptr<ReportWriter> make_summary_report(std::ostream& out);
// One object: kernels (facts, contracts, findings), errors, summary.
std::unique_ptr<ReportWriter> make_json_report(std::ostream& out);
// SARIF 2.1.0, one run.
std::unique_ptr<ReportWriter> make_sarif_report(std::ostream& out);
// Workflow commands of GitHub Actions, one a line.
std::unique_ptr<ReportWriter> make_github_report(std::ostream& out);
// One self-contained page, or an index and a page a kernel (see HtmlPages). `file` is where `out` leads to; empty: to no file.
std::unique_ptr<ReportWriter> make_html_report(std::ostream& out, const std::string& file);

// "3 findings (1 error, 2 warnings) in 12 kernels of 2 files; 1 suppressed"
struct SeverityCounts {
  std::size_t errors = 0, warnings = 0, infos = 0;
  void add(const Finding& finding);
};
// At most 120 characters of a name, which templates make longer than anybody reads.
std::string short_name(std::string name);
std::string summary_line(const ScanTotals& totals, const SeverityCounts& counts);

} // namespace kiln::isa::cli
