// isa_lint FILES...: findings, in a format of choice.
#include "isa_checks/cli/report/report.h"
#include "isa_checks/cli/scan_options.h"
#include "isa_checks/error.h"
#include <fmt/format.h>
#include <fstream>
#include <kiln_version.h>
#include <map>

namespace kiln::isa::cli {
namespace {

constexpr const char* description =
    "isa_lint reviews the machine code of AMD Instinct GPUs (gfx90a, gfx942, gfx950): code objects, offload bundles, programs "
    "and libraries with device code, assembly text, and folders of them.";
constexpr const char* footer = R"(
commands (isa_lint COMMAND --help says more):
  isa_lint FILES...                 report findings
  isa_lint explain [RULE]           what a rule finds, why it costs and what to try; all rules
  isa_lint facts FILES...           a table of registers, occupancy, widths
  isa_lint show FILE --kernel K     annotated disassembly
  isa_lint diff OLD NEW             what changed between two builds

exit codes: 0 clean, 1 findings at or over the threshold, 2 bad usage or unreadable input;
what can be read is reported all the same)";

using MakeReport = std::unique_ptr<ReportWriter> (*)(std::ostream&);

class Lint : public Command {
public:
  Lint() : Command("isa_lint", description) {
    app.add_option("files", files_, "Code objects, bundles, programs, libraries, assembly text, folders; - is standard input")
        ->required()
        ->type_name("FILES");
    add_input_options(app, arguments_);
    add_rule_options(app, arguments_);
    app.add_option("--format", format_, "text (default), json, sarif, html or github")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"text", "json", "sarif", "html", "github"}));
    app.add_flag("--statistics", statistics_, "How many findings each rule has, instead of the findings");
    app.add_flag("--group", group_, "Findings that are alike over the kernels as one, what costs most first")
        ->excludes("--statistics")
        ->excludes("--format");
    app.add_option("-o,--output", output_, "Write the report to FILE instead of standard output")->type_name("FILE");
    app.add_option("--write-baseline", write_baseline_,
                   "Write all findings to FILE, for a later --baseline, print the summary alone, and end with 0")
        ->type_name("FILE");
    app.set_version_flag("--version", "isa_lint " KILN_VERSION " (commit " KILN_COMMIT ")\nLLVM " KILN_LLVM_VERSION);
    app.footer(footer);
  }

  int run(Streams& streams) override {
    ScanOptions options = to_scan(arguments_, files_);
    options.functions = true;
    std::ofstream file;
    if (!output_.empty()) file = open(output_);
    std::ostream& out = output_.empty() ? streams.out : file;
    const std::unique_ptr<ReportWriter> report = make(out, output_.empty() && streams.colour);
    Baseline baseline;
    ScanSink sink;
    sink.kernel = [&](ScannedKernel&& kernel) {
      for (const Finding& finding : kernel.findings) baseline.add(finding);
      report->kernel(kernel);
    };
    sink.failed = [&](const Error& error) { report->failed(error); };
    if (report->renders())
      sink.render = [&](const KernelAnalysis& analysis, const ScannedKernel& kernel) { return report->render(analysis, kernel); };
    const ScanTotals totals = scan_with_progress(options, sink, streams);
    report->end(totals);
    out.flush();
    if (!output_.empty() && !out) throw Error(output_, "it cannot be written", "check the disk");
    if (totals.errors > 0) return unusable;
    if (!write_baseline_.empty()) {
      open(write_baseline_) << baseline.to_json();
      return clean;
    }
    return totals.findings > 0 ? found : clean;
  }

private:
  static std::ofstream open(const std::string& path) {
    std::ofstream file(path, std::ios::binary);
    if (!file) throw Error(path, "it cannot be opened for writing", "check the folder and its permissions");
    return file;
  }

  std::unique_ptr<ReportWriter> make(std::ostream& out, bool colour) const {
    const std::map<std::string_view, MakeReport> formats{
        {"json", make_json_report}, {"sarif", make_sarif_report}, {"github", make_github_report}};
    if (statistics_) return make_statistics_report(out);
    if (group_) return make_group_report(out, colour);
    // A baseline of a large collection is written to be silent about it.
    if (!write_baseline_.empty() && format_.empty()) return make_summary_report(out);
    if (format_ == "html") return make_html_report(out, output_);
    const auto at = formats.find(format_);
    return at == formats.end() ? make_text_report(out, colour) : at->second(out);
  }

  ScanArguments arguments_;
  std::vector<std::string> files_;
  bool statistics_ = false, group_ = false;
  std::string format_, output_, write_baseline_;
};

} // namespace

std::unique_ptr<Command> make_lint() { return std::make_unique<Lint>(); }

} // namespace kiln::isa::cli
