// The table of rules: the pages of docs/rules with their checks, embedded at build time (cmake/embed_pages.cmake).
#include "isa_checks/error.h"
#include "isa_checks/verdict/expectations_file.h"
#include "isa_checks/verdict/rule.h"
#include "isa_checks/verdict/rules/rules.h"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <iterator>

namespace kiln::isa {
namespace {

using enum Severity;

constexpr Rule table[] = {
#include "rule_pages.inc"
};

} // namespace

std::span<const Rule> all_rules() { return table; }

const Rule* find_rule(std::string_view id) {
  const Rule* const rule = std::ranges::find(table, id, &Rule::id);
  return rule == std::end(table) ? nullptr : rule;
}

bool names_rule(std::string_view word, std::string_view id) {
  const auto lower = [](std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
  };
  const std::string wanted = lower(word), own = lower(id);
  const Rule* const rule = find_rule(id);
  return !wanted.empty() &&
         (own.starts_with(wanted) || matches_glob(wanted, own) || (rule && matches_glob(wanted, std::string(rule->name))));
}

std::vector<std::string> rules_named(std::string_view word, const std::string& what) {
  std::vector<std::string> ids;
  for (const Rule& rule : table)
    if (word == "all" || names_rule(word, rule.id)) ids.emplace_back(rule.id);
  if (ids.empty())
    throw Error(what, fmt::format("'{}' names none of the {} rules", word, std::size(table)),
                "write an id, the beginning of one, or a name; isa_lint explain lists them");
  return ids;
}

} // namespace kiln::isa
