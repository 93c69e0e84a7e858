// SourceTexts: files of a folder, read once.
#include "isa_checks/cli/source_texts.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fstream>
#include <utility>

namespace kiln::isa::cli {

SourceTexts::SourceTexts(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (!folder_.empty() && !std::filesystem::is_directory(folder_, error))
    throw Error("--sources " + folder_.string(), "it is no folder", "name the folder that holds the files that line tables name");
}

std::string_view SourceTexts::at(const SourceLine& line) {
  if (folder_.empty() || !line.known()) return {};
  const std::vector<std::string>& lines = lines_of(std::filesystem::path(line.file).filename().string());
  const auto index = static_cast<std::size_t>(line.line) - 1;
  return index < lines.size() ? std::string_view(lines[index]) : std::string_view();
}

const std::vector<std::string>& SourceTexts::lines_of(const std::string& name) {
  const auto [entry, is_new] = files_.try_emplace(name);
  std::error_code error;
  if (is_new && !name.empty() && std::filesystem::is_regular_file(folder_ / name, error)) {
    std::ifstream file(folder_ / name);
    for (std::string line; std::getline(file, line);) {
      const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
      const std::size_t end = line.find_last_not_of(" \t\r");
      entry->second.push_back(end == std::string::npos ? "" : line.substr(begin, end + 1 - begin));
    }
  }
  return entry->second;
}

} // namespace kiln::isa::cli
