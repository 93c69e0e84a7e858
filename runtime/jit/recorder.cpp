// Recorder: one line of JSON a kernel; runtime/aot/manifest.h says what a line may hold.
#include "runtime/jit/recorder.h"
#include "gen/error.h"
#include "runtime/folder.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
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

// A write that was cut short is taken back, unless another process has gone on after it: then kiln aot skips it.
void take_back(int file, std::size_t bytes) {
  const off_t end = lseek(file, 0, SEEK_CUR);
  struct stat info{};
  if (fstat(file, &info) == 0 && info.st_size == end) static_cast<void>(!ftruncate(file, end - static_cast<off_t>(bytes)));
}

} // namespace

void Recorder::add(const KernelRequest& request) {
  nlohmann::ordered_json json{{"spec", request.spec}, {"arch", {request.arch}}};
  if (!request.overrides.empty()) json["set"] = request.overrides;
  const std::string line = json.dump() + "\n";
  const std::lock_guard lock(mutex_);
  if (seen_.contains(line)) return;
  const FileDescriptor file(open(manifest_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const std::string text = file && ends_in_line_break(file.get()) ? line : "\n" + line;
  errno = 0;
  const ssize_t put = file ? write(file.get(), text.data(), text.size()) : -1;
  if (put == static_cast<ssize_t>(text.size())) {
    seen_.insert(line);
    return;
  }
  const std::string reason = put < 0 ? std::strerror(errno) : fmt::format("{} of {} bytes could be written", put, text.size());
  if (put > 0) take_back(file.get(), static_cast<std::size_t>(put));
  throw EnvironmentError("manifest of missing kernels", fmt::format("{}: {}", manifest_.string(), reason),
                         "set KILN_JIT_MANIFEST to a file that you may write, on a disk with room");
}

} // namespace kiln
