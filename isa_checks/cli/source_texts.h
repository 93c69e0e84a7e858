// SourceTexts: the lines of source files that lie in one folder, by the names that line tables give.
#pragma once
#include "isa_checks/object/source_lines.h"
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa::cli {

class SourceTexts {
public:
  // Reads files of `folder`, each when it is first asked for; of none if `folder` is empty. Throws Error if it is no folder.
  explicit SourceTexts(std::filesystem::path folder);
  // The text of `line`, without the blanks around it. Only the last part of the file's name counts: a line table never leads to
  // another folder. "" if the folder has no such file, or the file no such line.
  std::string_view at(const SourceLine& line);

private:
  const std::vector<std::string>& lines_of(const std::string& name);

  std::filesystem::path folder_;
  std::map<std::string, std::vector<std::string>, std::less<>> files_; // by name
};

} // namespace kiln::isa::cli
