// Annotations in a GitHub Actions run: ::warning file=...,line=...,title=...::message
#include "isa_checks/cli/report/report.h"
#include <fmt/format.h>

namespace kiln::isa::cli {
namespace {

std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

class GithubReport : public ReportWriter {
public:
  explicit GithubReport(std::ostream& out) : out_(out) {}

  void kernel(const ScannedKernel& kernel) override {
    for (const Finding& f : kernel.findings) {
      counts_.add(f);
      const std::string_view command = f.severity == Severity::error ? "error" : f.severity == Severity::warning ? "warning" : "notice";
      const std::string place = f.file.empty() ? fmt::format("file={}", escaped(kernel.file, true))
                                               : fmt::format("file={},line={}", escaped(f.file, true), f.line);
      const std::string where = f.address ? fmt::format(" at {:#x}", *f.address) : "";
      const std::string text = fmt::format("{} ({}){}: {}\n{}", readable_name(f.kernel), f.arch, where, f.message, f.advice);
      out_ << fmt::format("::{} {},title={}::{}\n", command, place, escaped("isa_lint " + f.rule, true), escaped(text, false));
    }
  }

  void failed(const Error& error) override {
    out_ << fmt::format("::error file={},title=isa_lint::{}\n", escaped(error.subject, true), escaped(error.what(), false));
  }

  void end(const ScanTotals& totals) override { out_ << summary_line(totals, counts_) << '\n'; }

private:
  std::ostream& out_;
  SeverityCounts counts_;
};

} // namespace

std::unique_ptr<ReportWriter> make_github_report(std::ostream& out) { return std::make_unique<GithubReport>(out); }

} // namespace kiln::isa::cli
