// lint_precision: what isa_lint says about a collection of code objects: findings by rule, how many unlike ones, and how many a kernel
// has. Run it before and after a change of rules, over code that experts wrote.
//
//   ./dev bench lint_precision -- FOLDER... [--sample N] [--seed S] [--show N]
//
// --sample N takes N of the files, the same for the same seed (15). --show N prints up to N findings of each rule and severity to be
// read, from kernels that are as far apart as there are.
#include "gen/spec/characters.h"
#include "isa_checks/cli/scan.h"
#include "isa_checks/error.h"
#include "isa_checks/input/inputs.h"
#include "isa_checks/plural.h"
#include "tests/bench/arguments.h"
#include "tests/bench/own_objects.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <sys/resource.h>
#include <vector>

using namespace kiln::isa;

namespace {

struct Options {
  std::vector<std::string> paths;
  std::size_t sample = 0, show = 0; // 0: all; none
  std::uint64_t seed = 15;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      options.paths.push_back(word);
      continue;
    }
    std::uint64_t value = 0;
    if (i + 1 == argc || !kiln::read_whole(argv[++i], value))
      throw Error(word, "it wants a number from 0 on", "see the head of tests/bench/lint_precision_bench.cpp");
    if (word == "--sample") options.sample = value;
    else if (word == "--seed") options.seed = value;
    else if (word == "--show") options.show = value;
    else throw Error(word, "there is no such option", "use --sample, --seed or --show");
  }
  return options;
}

// Two findings are alike when their messages differ in numbers alone, and their instructions in operands.
std::string group_of(const Finding& f) {
  static const std::regex numbers("0x[0-9a-f]+|[0-9]+");
  return std::regex_replace(f.message, numbers, "#") + f.instruction.substr(0, f.instruction.find(' '));
}

struct Count {
  std::size_t findings = 0, kernels = 0, places = 0;
  std::map<std::string, std::vector<std::string>> groups; // texts to be read, at most a few of each
};

// For one severity: findings a kernel.
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

using Rules = std::map<std::pair<std::string, Severity>, Count>;

// In turns from each group, so that unlike findings come first; of a group evenly over the collection.
void show(const Rules& rules, std::size_t most) {
  for (const auto& [key, count] : rules) {
    fmt::print("\n{} {}: {} in {}\n", key.first, to_string(key.second), plural(count.findings, "finding"),
               plural(count.groups.size(), "group"));
    std::size_t shown = 0;
    for (std::size_t turn = 0; shown < most && turn < most; ++turn)
      for (const auto& [group, texts] : count.groups) {
        if (turn >= std::min(most, texts.size()) || shown == most) continue;
        fmt::print("{}", texts[turn * texts.size() / std::min(most, texts.size())]);
        ++shown;
      }
  }
}

void run(const Options& options) {
  Rules rules;
  std::map<Severity, Spread> spreads;
  std::size_t failed = 0;
  cli::ScanOptions scan;
  scan.paths = options.paths;
  if (options.sample > 0) {
    const auto fail = [&](const Error& error) { fmt::print("not read: {}\n", error.what()); };
    const std::vector<std::string> all = expand_paths(options.paths, fail);
    scan.paths.clear();
    std::ranges::sample(all, std::back_inserter(scan.paths), static_cast<std::ptrdiff_t>(options.sample), std::mt19937_64(options.seed));
  }
  scan.policy.no_settings = true;
  scan.policy.severity = Severity::info;
  cli::ScanSink sink;
  sink.kernel = [&](cli::ScannedKernel&& kernel) {
    std::set<std::pair<std::string, Severity>> here;
    std::map<Severity, std::size_t> count;
    for (const Finding& f : kernel.findings) {
      Count& c = rules[{f.rule, f.severity}];
      ++c.findings;
      c.places += 1 + f.others.size();
      auto& texts = c.groups[group_of(f)];
      if (options.show > 0) texts.push_back(fmt::format("{}\n{}", kernel.file, to_text(f)));
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
  const cli::ScanTotals totals = cli::scan(scan, sink);
  fmt::print("{:<8} {:<8} {:>9} {:>9} {:>9} {:>9}\n", "rule", "severity", "findings", "groups", "kernels", "places");
  for (const auto& [key, c] : rules)
    fmt::print("{:<8} {:<8} {:>9} {:>9} {:>9} {:>9}\n", key.first, to_string(key.second), c.findings, c.groups.size(), c.kernels, c.places);
  for (auto& [severity, spread] : spreads) fmt::print("{:<8} {}\n", to_string(severity), spread.text());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} of {}, {} not read; {:.1f} s of processor time, {} MiB\n", plural(totals.kernels, "kernel"), plural(totals.files, "file"),
             failed, processor_seconds(), usage.ru_maxrss >> 10);
  if (options.show > 0) show(rules, options.show);
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (kiln::take_short_form(argc, argv)) {
      const kiln::OwnObjects own("gfx942");
      run({.paths = {own.folder()}});
      return 0;
    }
    const Options options = parse(argc, argv);
    if (options.paths.empty()) {
      fmt::print("lint_precision: skipped, no collection was named\nusage: ./dev bench lint_precision -- FOLDER... [--sample N] [--seed S] "
                 "[--show N]\n");
      return 0;
    }
    run(options);
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    return 2;
  }
}
