// The options that the subcommands share: which inputs, which kernels, which rules.
#pragma once
#include "isa_checks/cli/command.h"
#include "isa_checks/cli/scan.h"
#include "isa_checks/cli/terminal.h"

namespace kiln::isa::cli {

// As parsed; to_scan checks the words.
struct ScanArguments {
  std::vector<std::string> kernels, archs, rules, no_rules, only;
  std::string severity, expect, baseline, settings;
  bool no_settings = false;
  unsigned threads = 0;
};

void add_input_options(CLI::App& app, ScanArguments& arguments);
void add_rule_options(CLI::App& app, ScanArguments& arguments);
// Throws Error for architectures, rules and severities that there are not.
ScanOptions to_scan(const ScanArguments& arguments, std::vector<std::string> paths);

// Scans with a progress line; inputs that cannot be read are one line each on `err`, and so is what was skipped. Throws
// Error when no kernel was found at all.
ScanTotals scan_with_progress(const ScanOptions& options, ScanSink sink, Streams& streams);

} // namespace kiln::isa::cli
