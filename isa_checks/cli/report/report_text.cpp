// The report for people.
#include "isa_checks/cli/report/report.h"
#include "isa_checks/cli/terminal.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace kiln::isa::cli {
namespace {

class TextReport : public ReportWriter {
public:
  TextReport(std::ostream& out, bool colour) : out_(out), colour_(colour) {}

  // The kernel once, then its findings.
  void kernel(const ScannedKernel& kernel) override {
    if (kernel.findings.empty()) return;
    out_ << fmt::format("{}\n  {}{}, {}\n", paint("1", printable(short_name(readable_name(kernel.facts.kernel)))),
                        kernel.function ? "function, " : "", kernel.facts.arch, printable(kernel.object));
    for (const Finding& finding : kernel.findings) {
      counts_.add(finding);
      out_ << text(finding);
    }
    out_ << '\n';
  }

  void end(const ScanTotals& totals) override {
    out_ << summary_line(totals, counts_) << '\n';
    constexpr std::size_t a_few = 50; // findings that one reads
    if (totals.findings > a_few) out_ << "--group joins what is alike over the kernels, what costs most first\n";
  }

private:
  std::string paint(std::string_view code, std::string_view text) const { return painted(colour_, code, text); }

  std::string text(const Finding& f) {
    std::string text =
        fmt::format("  {} {}: {}\n", paint(colour_of(f.severity), to_string(f.severity)), paint("1", f.rule), printable(f.message));
    std::string place;
    if (f.address) place = fmt::format("{:#x} {}", *f.address, f.instruction);
    if (!f.others.empty()) place += fmt::format(", and {} more", f.others.size());
    if (!place.empty()) text += fmt::format("      at:  {}\n", place);
    if (!f.loop.empty())
      text += fmt::format("      in:  {}, {:.0f} % of the kernel's clocks by the issue estimate\n", f.loop, 100 * f.share);
    for (const std::string& step : f.path) text += fmt::format("      path: {}\n", printable(step));
    if (!f.file.empty()) text += fmt::format("      src: {}:{}\n", printable(f.file), f.line);
    if (explained_.insert(f.rule).second) text += fmt::format("      why: {}\n      try: {}\n", f.why, f.advice);
    return text;
  }

  std::ostream& out_;
  bool colour_;
  SeverityCounts counts_;
  std::set<std::string> explained_; // rules whose reasons were printed
};

} // namespace

void SeverityCounts::add(const Finding& finding) {
  ++(finding.severity == Severity::error ? errors : finding.severity == Severity::warning ? warnings : infos);
}

std::string short_name(std::string name) {
  constexpr std::size_t most = 120;
  if (name.size() <= most) return name;
  name.resize(most - 3);
  return name + "...";
}

std::string summary_line(const ScanTotals& totals, const SeverityCounts& counts) {
  std::string parts;
  const auto part = [&](std::size_t count, std::string_view noun) {
    if (count > 0) parts += (parts.empty() ? "" : ", ") + (noun == "info" ? fmt::format("{} info", count) : plural(count, noun));
  };
  part(counts.errors, "error");
  part(counts.warnings, "warning");
  part(counts.infos, "info");
  std::string line = fmt::format("{}{} in {} of {}", plural(totals.findings, "finding"), parts.empty() ? "" : " (" + parts + ")",
                                 plural(totals.kernels, "kernel"), plural(totals.files, "file"));
  if (totals.suppressed > 0) line += fmt::format("; {} suppressed", totals.suppressed);
  if (totals.functions > 0)
    line += fmt::format("; {} of {} beside the kernels reviewed, {} % of the code not", totals.reviewed_functions,
                        plural(totals.functions, "function"),
                        100 * (totals.function_bytes - std::min(totals.function_bytes, totals.reviewed_function_bytes)) /
                            std::max<std::uint64_t>(1, totals.function_bytes + totals.kernel_bytes));
  if (totals.undecodable > 0) line += fmt::format("; {} of code cannot be decoded", plural(totals.undecodable, "word"));
  return line;
}

std::unique_ptr<ReportWriter> make_text_report(std::ostream& out, bool colour) { return std::make_unique<TextReport>(out, colour); }

} // namespace kiln::isa::cli
