// lint_precision: what isa_lint says about a collection of code objects: findings by rule, and how many a kernel has. Run it before
// and after a change of rules, over code that experts wrote: ./dev bench lint_precision -- FOLDER...
#include "isa_checks/cli/scan.h"
#include "isa_checks/error.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace kiln::isa;

namespace {

struct Count {
  std::size_t findings = 0, kernels = 0, places = 0;
};

// Of one severity: findings a kernel.
struct Spread {
  std::vector<std::size_t> kernels;
  std::string text() {
    std::ranges::sort(kernels);
    if (kernels.empty()) return "-";
    std::size_t sum = 0;
    for (const std::size_t n : kernels) sum += n;
    return fmt::format("{} in all; a kernel: median {}, 9 of 10 at most {}, worst {}", sum, kernels[kernels.size() / 2],
                       kernels[kernels.size() * 9 / 10], kernels.back());
  }
};

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("lint_precision: skipped, no collection was named\nusage: ./dev bench lint_precision -- FOLDER...\n");
    return 0;
  }
  std::map<std::pair<std::string, Severity>, Count> rules;
  std::map<Severity, Spread> spreads;
  std::size_t failed = 0;
  cli::ScanOptions options;
  options.paths.assign(argv + 1, argv + argc);
  options.policy.no_settings = true;
  options.policy.severity = Severity::info;
  cli::ScanSink sink;
  sink.kernel = [&](cli::ScannedKernel&& kernel) {
    std::set<std::pair<std::string, Severity>> here;
    std::map<Severity, std::size_t> count;
    for (const Finding& f : kernel.findings) {
      Count& c = rules[{f.rule, f.severity}];
      ++c.findings;
      c.places += 1 + f.others.size();
      here.emplace(f.rule, f.severity);
      ++count[f.severity];
    }
    for (const auto& key : here) ++rules[key].kernels;
    for (const Severity s : {Severity::error, Severity::warning, Severity::info}) spreads[s].kernels.push_back(count[s]);
  };
  sink.failed = [&](const Error& error) {
    ++failed;
    fmt::print("not read: {}\n", error.what());
  };
  try {
    const cli::ScanTotals totals = cli::scan(options, sink);
    fmt::print("{:<8} {:<8} {:>9} {:>9} {:>9}\n", "rule", "severity", "findings", "kernels", "places");
    for (const auto& [key, c] : rules)
      fmt::print("{:<8} {:<8} {:>9} {:>9} {:>9}\n", key.first, to_string(key.second), c.findings, c.kernels, c.places);
    for (auto& [severity, spread] : spreads) fmt::print("{:<8} {}\n", to_string(severity), spread.text());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{} of {}, {} not read; {:.1f} s of processor time, {} MiB\n", plural(totals.kernels, "kernel"),
               plural(totals.files, "file"), failed, processor_seconds(), usage.ru_maxrss >> 10);
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
