// The tree's own sources, as the tests of the house read them.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace kiln::house {

// Contents by path relative to the tree, of the C++ files below `folders`.
inline std::map<std::string, std::string> read_sources(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  const fs::path tree = KILN_SOURCE_DIR;
  std::map<std::string, std::string> sources;
  for (const std::string& folder : folders)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tree / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp" && ending != ".def") continue;
      std::ifstream file(entry.path());
      sources[entry.path().lexically_relative(tree).string()] = {std::istreambuf_iterator<char>(file), {}};
    }
  return sources;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text)
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  lines.pop_back(); // what follows the last line feed
  return lines;
}

inline std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

} // namespace kiln::house
