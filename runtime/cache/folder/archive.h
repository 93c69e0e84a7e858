// Archive: entries of a cache as one file, a POSIX tar that any tar unpacks, the same bytes for the same entries.
#pragma once
#include <cstdint>
#include <functional>
#include <istream>
#include <ostream>
#include <string>

namespace kiln {

// Appends one file. `path` has at most 100 bytes. Time, owner and group are zero.
void write_archive_file(std::ostream& archive, const std::string& path, const std::string& bytes);
void end_archive(std::ostream& archive);

// Calls `file` for every regular file, in order. Throws UserError (`name`: of the archive) when it is no tar or is cut off, and
// for paths that would leave a folder.
void read_archive(std::istream& archive, const std::string& name,
                  const std::function<void(const std::string& path, std::string bytes)>& file);

} // namespace kiln
