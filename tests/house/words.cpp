// Proves that nothing goes by a former name: docs/glossary.md says which words gave way to which.
#include "tests/house/sources.h"
#include <doctest/doctest.h>
#include <regex>

namespace kiln::house {
namespace {

// | `old`, `old*` | new | of the table below the heading. A star stands for the rest of an identifier.
std::vector<std::pair<std::string, std::string>> former_names() {
  std::ifstream file(std::filesystem::path(KILN_SOURCE_DIR) / "docs/glossary.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::pair<std::string, std::string>> names;
  const std::regex quoted("`([^`]+)`");
  for (const std::string& line : lines_of(text.substr(text.find("## Former names")))) {
    const std::size_t second = line.find('|', 1);
    if (!line.starts_with("| `") || second == std::string::npos) continue;
    const std::string old = line.substr(0, second);
    for (std::sregex_iterator at(old.begin(), old.end(), quoted), end; at != end; ++at)
      names.emplace_back((*at)[1], line.substr(second + 1));
  }
  return names;
}

std::regex pattern_of(std::string name) {
  std::string pattern;
  for (const char c : name) pattern += c == '*' ? "\\w+" : std::string(c == '.' ? "\\" : "") + c;
  return std::regex("\\b" + pattern + "\\b");
}

// Without literals: schemas that are published keep their fields.
std::string code_and_comment(const std::string& line) {
  std::string result;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || (line[i - 1] != '\\' && line[i - 1] != '\''))) inside = !inside;
    else if (!inside) result += line[i];
  }
  return result;
}

} // namespace

TEST_CASE("nothing goes by a former name") {
  const auto names = former_names();
  REQUIRE(names.size() > 20);
  std::vector<std::regex> patterns;
  for (const auto& [old, now] : names) patterns.push_back(pattern_of(old));
  for (const auto& [path, text] : read_sources({"machine", "gen", "templates", "isa_checks", "runtime", "examples", "tests"}))
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& old = names[i].first;
      if (text.find(old.substr(0, old.find('*'))) == std::string::npos) continue;
      for (const std::string& line : lines_of(text))
        CHECK_MESSAGE(!std::regex_search(code_and_comment(line), patterns[i]), path, ": '", old, "' is now", names[i].second,
                      " in: ", line);
    }
}

} // namespace kiln::house
