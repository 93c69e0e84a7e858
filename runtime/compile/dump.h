// Dumps: files left for a person to look at, in a private folder.
#pragma once
#include <filesystem>
#include <span>
#include <string>

namespace kiln {

struct DumpFile {
  std::string name; // relative, may hold folders: "common/platform.h"
  std::string bytes;
};

// Writes the files into a new folder `root`/`name`-PID-N and returns its path. `root` is made with mode 0700 when it is
// not there. Throws EnvironmentError when it cannot be written, or belongs to another user than this one or root.
std::filesystem::path write_dump(const std::filesystem::path& root, const std::string& name,
                                 std::span<const DumpFile> files);

} // namespace kiln
