// Options to ScanOptions, and what a scan says to a person.
#include "isa_checks/cli/scan_options.h"
#include "isa_checks/cli/report/report.h"
#include "isa_checks/error.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <fmt/format.h>

namespace kiln::isa::cli {
namespace {

// The rules that the words of an option name.
std::vector<std::string> ids_of(const std::vector<std::string>& words, const std::string& option) {
  std::vector<std::string> ids;
  for (const std::string& word : words)
    for (std::string& id : rules_named(word, option)) ids.push_back(std::move(id));
  return ids;
}

std::string skipped_line(const ScanTotals& totals) {
  std::string list;
  for (const auto& [arch, count] : totals.skipped) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, arch);
  return fmt::format("skipped code objects of other architectures: {}", list);
}

} // namespace

void add_input_options(CLI::App& app, ScanArguments& a) {
  app.add_option("--kernel", a.kernels, "Only kernels whose name, mangled or readable, matches GLOB")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--arch", a.archs,
                 "Only these architectures (gfx90a, gfx942, gfx950); for assembly text that names none, the one it is for")
      ->type_name("ARCH")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("-j,--threads", a.threads, "Threads (default: one a core)")->type_name("N")->check(CLI::Range(1, 1024));
}

void add_rule_options(CLI::App& app, ScanArguments& a) {
  app.add_option("--rule", a.rules,
                 "Switch a rule on that is off by default: by id, beginning of an id (MEM), name or glob; 'all' for every one")
      ->type_name("RULE")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--no-rule", a.no_rules, "Switch a rule off")->type_name("RULE")->delimiter(',')->allow_extra_args(false);
  app.add_option("--only", a.only, "These rules and no others")->type_name("RULE")->delimiter(',')->allow_extra_args(false);
  app.add_option("--severity", a.severity, "Report findings of at least this severity: error, warning (default) or info")
      ->type_name("LEVEL");
  app.add_option("--expect", a.expect, "Check kernels against the expectations in FILE (YAML or JSON)")->type_name("FILE");
  app.add_option("--baseline", a.baseline, "Leave out the findings that FILE knows (see --write-baseline)")->type_name("FILE");
  app.add_option("--settings", a.settings, "Settings for every input, instead of the nearest .isa_lint.yaml above it")->type_name("FILE");
  app.add_flag("--no-settings", a.no_settings, "Read no .isa_lint.yaml");
}

ScanOptions to_scan(const ScanArguments& a, std::vector<std::string> paths) {
  for (const std::string& arch : a.archs) target_facts(arch); // throws for an unknown one
  ScanOptions options{.paths = std::move(paths), .kernels = a.kernels, .threads = a.threads};
  options.input.archs = a.archs;
  if (a.archs.size() == 1) options.input.assembly_arch = a.archs.front();
  PolicyOptions& policy = options.policy;
  std::vector<std::string> with = a.rules;
  policy.rules.all = std::erase(with, "all") > 0; // besides what a settings file disables
  policy.rules.only = ids_of(a.only, "--only");
  policy.rules.with = ids_of(with, "--rule");
  policy.rules.without = ids_of(a.no_rules, "--no-rule");
  if (!a.severity.empty()) {
    policy.severity = severity_of(a.severity);
    if (!policy.severity) throw Error("--severity", "there is no severity '" + a.severity + "'", "use error, warning or info");
  }
  const auto given = [](const std::string& file) { return file.empty() ? std::nullopt : std::optional(file); };
  policy.expect = given(a.expect);
  policy.baseline = given(a.baseline);
  policy.settings = given(a.settings);
  policy.no_settings = a.no_settings;
  return options;
}

ScanTotals scan_with_progress(const ScanOptions& options, ScanSink sink, Streams& streams) {
  ProgressLine progress;
  sink.failed = [&, report = sink.failed](const Error& error) {
    progress.clear();
    streams.err << "error: " << printable(error.what()) << '\n';
    if (report) report(error);
  };
  sink.kernel = [&, report = sink.kernel](ScannedKernel&& kernel) {
    if (!kernel.findings.empty()) progress.clear(); // a report may go to the same terminal
    report(std::move(kernel));
  };
  sink.progress = [&](std::uint64_t done, std::uint64_t all, const ScanTotals& totals) {
    progress.show(done, all, totals.kernels, totals.findings);
  };
  const ScanTotals totals = scan(options, sink);
  progress.clear();
  if (!totals.skipped.empty()) streams.err << printable(skipped_line(totals)) << '\n';
  if (totals.host_files > 0) streams.err << fmt::format("skipped {} without device code\n", plural(totals.host_files, "host file"));
  for (const std::string& warning : totals.warnings) streams.err << "warning: " << printable(warning) << '\n';
  if (totals.kernels == 0 && totals.errors == 0)
    throw Error("kernels", fmt::format("none was found in {} of {}", plural(totals.objects, "code object"), plural(totals.files, "file")),
                options.kernels.empty() ? fmt::format("give code for one of {}", known_target_names())
                                        : "isa_lint facts lists the kernels that --kernel may match");
  return totals;
}

} // namespace kiln::isa::cli
