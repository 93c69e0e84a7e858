// Choosing the rules, running them, ordering what they find.
#include "isa_checks/verdict/lint.h"
#include "isa_checks/error.h"
#include "isa_checks/verdict/rules/sink.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::isa {
namespace {

bool contains(const std::vector<std::string>& ids, std::string_view id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

void check_ids(const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    if (find_rule(id)) continue;
    std::vector<std::string_view> known;
    for (const Rule& rule : all_rules()) known.push_back(rule.id);
    throw Error("rule '" + id + "'", fmt::format("it is none of the {} rules", known.size()),
                fmt::format("use one of {}", fmt::join(known, ", ")));
  }
}

// Rules about what a launch gives to a kernel: a function has what its callers have.
bool of_launches(const Rule& rule) {
  constexpr std::string_view families[] = {"BND", "LCH", "OCC", "SPL"};
  return std::ranges::any_of(families, [&](std::string_view f) { return rule.id.starts_with(f); });
}

bool chosen(const Rule& rule, const LintOptions& options) {
  if (contains(options.without, rule.id)) return false;
  if (!options.only.empty()) return contains(options.only, rule.id);
  return rule.on || options.all || contains(options.with, rule.id);
}

} // namespace

std::vector<Finding> lint(const KernelAnalysis& kernel, const LintOptions& options) {
  for (const auto* ids : {&options.only, &options.with, &options.without}) check_ids(*ids);
  FindingSink sink(kernel, options);
  for (const Rule& rule : all_rules())
    if (chosen(rule, options) && !(kernel.program.function && of_launches(rule))) {
      sink.begin(rule);
      rule.check(kernel, sink);
    }
  std::vector<Finding> findings = sink.take();
  std::erase_if(findings, [&](const Finding& f) { return f.severity < options.least; });
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.address.value_or(0) < b.address.value_or(0);
  });
  return findings;
}

} // namespace kiln::isa
