// Output: writing files for a user, with errors that name the file.
#include "runtime/cli/output.h"
#include "gen/error.h"
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

namespace kiln::cli {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw EnvironmentError(folder.string(), error.message(), "name a folder that you may write");
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) {
    throw EnvironmentError(path.string(), fmt::format("{} bytes could not be written: {}", bytes.size(), std::strerror(errno)),
                           "name a folder that you may write, with enough room");
  }
}

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) throw UserError(path.string(), std::strerror(errno), "name a file that can be read");
  return bytes;
}

} // namespace kiln::cli
