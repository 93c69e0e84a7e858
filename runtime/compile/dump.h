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

inline constexpr std::size_t max_dumps = 256; // in one folder; the oldest go

// Writes the files into a new folder `root`/`name`-PID-N of mode 0700 and returns its path. `root` is made with mode 0700 when it
// is not there. Throws EnvironmentError when it cannot be written, belongs to another user than this one or root, or others may
// write to it and it has no sticky bit.
std::filesystem::path write_dump(const std::filesystem::path& root, const std::string& name, std::span<const DumpFile> files);

} // namespace kiln
