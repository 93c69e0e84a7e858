// append_line: one write at the end of a file.
#include "runtime/append_line.h"
#include "gen/error.h"
#include "runtime/folder.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

// Empty, or ends in a line break. It does not if a process was killed, or the disk full, in the middle of a line.
bool ends_in_line_break(int file) {
  const off_t size = lseek(file, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || (pread(file, &last, 1, size - 1) == 1 && last == '\n');
}

// A write that was cut short is taken back, unless another process has gone on after it: then whoever reads the file skips it.
void take_back(int file, std::size_t bytes) {
  const off_t end = lseek(file, 0, SEEK_CUR);
  struct stat info{};
  if (fstat(file, &info) == 0 && info.st_size == end) static_cast<void>(!ftruncate(file, end - static_cast<off_t>(bytes)));
}

} // namespace

void append_line(const std::filesystem::path& path, const std::string& line, const std::string& subject, const std::string& remedy) {
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const std::string text = (file && ends_in_line_break(file.get()) ? "" : "\n") + line + "\n";
  const FileSizeErrors no_signal;
  errno = 0;
  const ssize_t put = file ? write(file.get(), text.data(), text.size()) : -1;
  if (put == static_cast<ssize_t>(text.size())) return;
  const std::string reason = put < 0 ? std::strerror(errno) : fmt::format("{} of {} bytes could be written", put, text.size());
  if (put > 0) take_back(file.get(), static_cast<std::size_t>(put));
  throw EnvironmentError(subject, fmt::format("{}: {}", path.string(), reason), remedy);
}

} // namespace kiln
