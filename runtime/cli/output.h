// Output: writing files for a user, with errors that name the file.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace kiln::cli {

// Makes the folder, parents included. Throws EnvironmentError.
void make_folder(const std::filesystem::path& folder);
void write_file(const std::filesystem::path& path, std::string_view bytes);
std::string read_file(const std::filesystem::path& path); // throws UserError when it cannot be read

} // namespace kiln::cli
