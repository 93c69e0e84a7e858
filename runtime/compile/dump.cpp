// Dumps: files left for a person to look at, in a private folder.
#include "runtime/compile/dump.h"
#include "gen/error.h"
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& fact) {
  throw EnvironmentError("dump folder", fmt::format("{}: {}", path.string(), fact),
                         "set KILN_DUMP_DIR to a folder that you may write");
}

void make_private(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail(folder, std::strerror(errno));
  struct stat link {
  }, target{};
  if (lstat(folder.c_str(), &link) != 0 || stat(folder.c_str(), &target) != 0) fail(folder, std::strerror(errno));
  if (!S_ISDIR(target.st_mode)) fail(folder, "is not a folder");
  for (const uid_t owner : {link.st_uid, target.st_uid}) {
    if (owner != geteuid() && owner != 0) fail(folder, fmt::format("belongs to user {}, not to {}", owner, geteuid()));
  }
}

// The first name of `base`-PID-0, -1, ... that nobody has.
std::filesystem::path make_new(const std::filesystem::path& root, const std::string& base) {
  for (int n = 0; n < 100000; ++n) {
    std::filesystem::path folder = root / fmt::format("{}-{}-{}", base, getpid(), n);
    if (mkdir(folder.c_str(), S_IRWXU) == 0) return folder;
    if (errno != EEXIST) fail(folder, std::strerror(errno));
  }
  fail(root, "holds 100000 dumps of this process");
}

} // namespace

std::filesystem::path write_dump(const std::filesystem::path& root, const std::string& name,
                                 std::span<const DumpFile> files) {
  make_private(root);
  std::filesystem::path folder = make_new(root, name);
  for (const DumpFile& file : files) {
    const std::filesystem::path path = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary);
    stream.write(file.bytes.data(), static_cast<std::streamsize>(file.bytes.size()));
    stream.close();
    if (!stream) fail(path, "could not be written");
  }
  return folder;
}

} // namespace kiln
