// Files and folders of a cache.
#include "runtime/cache/files.h"
#include "runtime/cache/digest.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

// Of /proc, whose files have no size.
std::string read_stream(const char* path) {
  const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  std::string text;
  ssize_t got = 0;
  while (file && (got = read(file.get(), buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

// Start time in clock ticks since boot; empty when there is no such process, or only what is left of a dead one.
std::string start_of(std::string_view pid) {
  const std::string stat = read_stream(fmt::format("/proc/{}/stat", pid).c_str());
  std::size_t at = stat.rfind(')'); // the name of the program may hold anything
  if (at == std::string::npos || at + 2 >= stat.size() || stat[at + 2] == 'Z' || stat[at + 2] == 'X') return {};
  for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1); // the name is field 2, the start is field 22
  if (at == std::string::npos) return {};
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

// Process ids mean the same only in one name space of one boot.
std::string host_mark() {
  char space[64] = {};
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  const std::string boot = read_stream("/proc/sys/kernel/random/boot_id");
  return sha256({boot, std::string_view(space, length > 0 ? static_cast<std::size_t>(length) : 0)}).substr(0, 12);
}

} // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

std::optional<std::string> read_whole(int folder, const char* name, std::uint64_t most) {
  // Not blocking: what lies there may be a pipe that nobody writes to.
  const FileDescriptor file(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > most) {
    errno = S_ISREG(info.st_mode) ? EFBIG : EINVAL;
    return std::nullopt;
  }
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break; // truncated meanwhile: the checksum will tell
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

bool write_durably(int folder, const char* name, std::string_view bytes, unsigned mode) {
  const FileDescriptor file(openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file) return false;
  while (!bytes.empty()) {
    const ssize_t put = write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return fsync(file.get()) == 0;
}

std::string distrust(const std::filesystem::path& folder) {
  struct stat link {
  }, target{};
  if (lstat(folder.c_str(), &link) != 0 || stat(folder.c_str(), &target) != 0) return std::strerror(errno);
  if (!S_ISDIR(target.st_mode)) return "it is no folder";
  for (const uid_t owner : {link.st_uid, target.st_uid})
    if (owner != geteuid() && owner != 0) return fmt::format("it belongs to user {}, not to {} or root", owner, geteuid());
  if ((target.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("others may write to it (mode {:04o})", target.st_mode & 07777u);
  return {};
}

std::string process_mark() { return fmt::format("{}-{}-{}", host_mark(), getpid(), start_of("self")); }

bool surely_gone(std::string_view mark) {
  const std::size_t first = mark.find('-'), second = mark.find('-', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos || mark.substr(0, first) != host_mark()) return false;
  const std::string_view pid = mark.substr(first + 1, second - first - 1);
  return start_of(pid) != mark.substr(second + 1, mark.find('-', second + 1) - second - 1);
}

} // namespace kiln
