// Proves what every file has: a first line that says its subject, a bounded length, and not too many neighbours.
#include "tests/house/sources.h"
#include <algorithm>
#include <doctest/doctest.h>

namespace kiln::house {
namespace {

constexpr std::size_t longest_file = 400, max_files = 25, longest_function = 60;
const std::vector<std::string> code{"machine", "gen", "isa_checks", "runtime", "templates", "examples"};
const std::vector<std::string> code_and_tests{"machine", "gen", "isa_checks", "runtime", "templates", "examples", "tests"};

TEST_CASE("a file begins with its subject") {
  for (const auto& [path, text] : read_sources(code_and_tests))
    CHECK_MESSAGE(text.starts_with("// "), path, ": the first line is no comment that says what the file is about");
}

TEST_CASE("no file has more than 400 lines, no folder more than 25 files") {
  std::map<std::string, std::size_t> files;
  for (const auto& [path, text] : read_sources(code_and_tests)) {
    CHECK_MESSAGE(static_cast<std::size_t>(std::ranges::count(text, '\n')) <= longest_file, path, " is longer");
    if (!path.starts_with("tests/")) ++files[folder_of(path)];
  }
  for (const auto& [folder, count] : files) CHECK_MESSAGE(count <= max_files, folder, " holds ", count);
}

// Such a sentence names what it is about and leaves out the verb, so that a stranger reads it twice.
TEST_CASE("no sentence of a comment begins with Of or Where") {
  for (const auto& [path, text] : read_sources(code_and_tests))
    for (const std::string word : {" Of ", " Where ", " What it means "})
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::string before = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
        const bool begins = before.ends_with("//") || before.ends_with('.') || before.ends_with(':') || before.ends_with(';');
        CHECK_MESSAGE((!begins || before.find("//") == std::string::npos), path, ":", std::ranges::count(text.substr(0, at), '\n') + 1,
                      ": a sentence begins with", word);
      }
}

// A function of this style begins at a line that ends with "{" and starts in column 0 or 2 with a letter, and ends at the "}" in the
// same column. Types, namespaces and initialisers do not count.
TEST_CASE("no function has more than 60 lines, unless a comment above it gives the reason") {
  for (const auto& [path, text] : read_sources(code)) {
    const std::vector<std::string> lines = lines_of(text);
    for (std::size_t at = 0; at < lines.size(); ++at) {
      const std::string& line = lines[at];
      const std::size_t indent = line.find_first_not_of(' ');
      if (indent == std::string::npos || indent > 2 || !line.ends_with("{") || line.find('(') == std::string::npos) continue;
      if (line.find(" = ") != std::string::npos || line.starts_with("#") || line.find("TEST_CASE") != std::string::npos) continue;
      std::size_t end = at + 1;
      while (end < lines.size() &&
             (lines[end].size() <= indent || lines[end][indent] != '}' || lines[end].find_first_not_of(' ') != indent))
        ++end;
      const bool reason = at > 0 && lines[at - 1].find("lines: ") != std::string::npos;
      CHECK_MESSAGE((reason || end - at + 1 <= longest_function), path, ":", at + 1, ": ", end - at + 1, " lines");
    }
  }
}

} // namespace
} // namespace kiln::house
