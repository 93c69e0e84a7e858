// Process marks, by /proc.
#include "runtime/cache/folder/process_mark.h"
#include "runtime/digest.h"
#include "runtime/folder.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

namespace kiln {
namespace {

// The first bytes of a file of /proc: these have no size, and what is read here is short.
std::string read_stream(const char* path) {
  const FileDescriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text(4096, '\0');
  const ssize_t got = file ? read(file.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
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

std::vector<std::string_view> parts_of(std::string_view mark) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= mark.size();) {
    const std::size_t end = std::min(mark.find('-', at), mark.size());
    parts.push_back(mark.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Processes of other users may be hidden in /proc, but not from a signal that is not sent.
bool exists(std::string_view pid) {
  pid_t number = 0;
  std::from_chars(pid.data(), pid.data() + pid.size(), number);
  return number > 0 && kill(number, 0) != 0 && errno == EPERM;
}

// HOST, PID, START and what follows. A mark may come out of a link that anybody made who may write to the cache.
bool is_of_process(const std::vector<std::string_view>& parts) {
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return parts.size() >= 3 && parts[0].size() == 12 && std::ranges::all_of(parts[0], hexadecimal) && is_number(parts[1]) &&
         (parts[2].empty() || is_number(parts[2]));
}

} // namespace

std::string process_mark() { return fmt::format("{}-{}-{}", host_mark(), getpid(), start_of("self")); }

std::string unique_mark() {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{}", process_mark(), ++count);
}

bool is_unique_mark(std::string_view name) {
  const std::vector<std::string_view> parts = parts_of(name);
  return parts.size() == 4 && is_of_process(parts) && is_number(parts[3]);
}

bool surely_gone(std::string_view mark) {
  const std::vector<std::string_view> parts = parts_of(mark);
  if (!is_of_process(parts) || parts[0] != host_mark()) return false;
  const std::string start = start_of(parts[1]);
  return start.empty() ? !exists(parts[1]) : !parts[2].empty() && start != parts[2];
}

} // namespace kiln
