// append_line: a line at the end of a file to which several processes may write.
#pragma once
#include <filesystem>
#include <string>

namespace kiln {

// Appends `line` with a line break, whole or not at all: one write at the end of the file, which other processes' writes do not cut, and
// which is taken back when the file cannot grow. Makes the file. Throws EnvironmentError with these words.
void append_line(const std::filesystem::path& file, const std::string& line, const std::string& subject, const std::string& remedy);

} // namespace kiln
