// The report for people who review a library: what is alike over its kernels once.
#include "isa_checks/cli/report/report.h"
#include "isa_checks/cli/terminal.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <vector>

namespace kiln::isa::cli {
namespace {

// The text with every number, decimal or hexadecimal, and every register's as "#".
std::string without_numbers(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
      result += text[i];
      continue;
    }
    const bool hex = text.substr(i).starts_with("0x");
    if (hex) i += 2;
    while (i + 1 < text.size() &&
           (hex ? std::isxdigit(static_cast<unsigned char>(text[i + 1])) : std::isdigit(static_cast<unsigned char>(text[i + 1]))) != 0)
      ++i;
    result += '#';
  }
  return result;
}

class GroupReport : public ReportWriter {
public:
  GroupReport(std::ostream& out, bool colour) : out_(out), colour_(colour) {}

  void kernel(const ScannedKernel& kernel) override {
    for (const Finding& f : kernel.findings) {
      counts_.add(f);
      const std::string where = f.file.empty() ? without_numbers(f.instruction.substr(0, f.instruction.find(' ')) + " " + f.message)
                                               : fmt::format("{}:{}", f.file, f.line);
      Group& group = groups_[{f.rule, f.severity, where}];
      ++group.findings;
      group.places += 1 + f.others.size();
      group.clocks += f.share;
      if (kernel.facts.kernel != group.last_kernel || kernel.object != group.last_object) ++group.kernels;
      group.last_kernel = kernel.facts.kernel;
      group.last_object = kernel.object;
      if (group.findings == 1 || f.share > group.worst.share) {
        group.worst = f;
        group.object = kernel.object;
      }
    }
  }

  void end(const ScanTotals& totals) override {
    std::vector<const std::pair<const Key, Group>*> sorted;
    for (const auto& entry : groups_) sorted.push_back(&entry);
    std::ranges::stable_sort(sorted, [](const auto* a, const auto* b) {
      const auto rank = [](const auto& entry) { return std::tuple(-static_cast<int>(std::get<1>(entry.first)), -entry.second.clocks); };
      return rank(*a) < rank(*b);
    });
    for (const auto* entry : sorted) out_ << text(entry->first, entry->second);
    out_ << fmt::format("{} of {}\n", plural(groups_.size(), "group"), summary_line(totals, counts_));
  }

private:
  using Key = std::tuple<std::string, Severity, std::string>; // rule, severity, source line or what stands for it
  struct Group {
    std::size_t findings = 0, kernels = 0, places = 0;
    double clocks = 0; // shares of all its kernels together
    Finding worst;     // the one with the largest share
    std::string object, last_kernel, last_object;
  };

  std::string text(const Key& key, const Group& group) const {
    const auto& [rule, severity, where] = key;
    const Finding& f = group.worst;
    std::string text = fmt::format("{} {}: {} in {}, {}, up to {:.0f} % of a kernel's clocks\n",
                                   painted(colour_, colour_of(severity), to_string(severity)), rule, plural(group.findings, "finding"),
                                   plural(group.kernels, "kernel"), plural(group.places, "place"), 100 * f.share);
    text += fmt::format("    {}\n", printable(f.message));
    if (!f.file.empty()) text += fmt::format("    src: {}:{}\n", printable(f.file), f.line);
    text += fmt::format("    in:  {}{}{}\n", printable(short_name(readable_name(f.kernel))),
                        f.address ? fmt::format(", {:#x} {}", *f.address, f.instruction) : "", f.loop.empty() ? "" : ", " + f.loop);
    text += fmt::format("    of:  {}, {}\n    try: {}\n\n", f.arch, printable(group.object), f.repair.change);
    return text;
  }

  std::ostream& out_;
  bool colour_;
  SeverityCounts counts_;
  std::map<Key, Group> groups_;
};

} // namespace

std::unique_ptr<ReportWriter> make_group_report(std::ostream& out, bool colour) { return std::make_unique<GroupReport>(out, colour); }

} // namespace kiln::isa::cli
