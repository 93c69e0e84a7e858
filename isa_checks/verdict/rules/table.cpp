// The table of rules: each line of rules.def joined with its page. The pages are embedded at build time (cmake/embed_pages.cmake).
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

constexpr Rule pages[] = {
#include "rule_pages.inc"
};

constexpr char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// The page of the rule that rules.def calls `name`. Does not compile when docs/rules has none.
consteval Rule rule_of(std::string_view name, decltype(Rule::check) check) {
  for (Rule rule : pages)
    if (std::ranges::equal(rule.id, name, {}, {}, upper)) {
      rule.check = check;
      return rule;
    }
  throw "a rule of rules.def has no page in docs/rules";
}

constexpr Rule table[] = {
#define KILN_RULE(name) rule_of(#name, rules::name),
#include "isa_checks/verdict/rules/rules.def"
#undef KILN_RULE
};
static_assert(std::size(table) == std::size(pages), "a page in docs/rules has no rule in rules.def");

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
