// Claim: one compile of a key at a time among processes.
#include "runtime/cache/claim.h"
#include "runtime/cache/files.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kiln {
namespace {

std::string link_target(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).string();
}

// Two of those who take over may remove each other's claim between reading and unlinking. Then two compile, and
// one of the two equal results is thrown away: wasteful once in a crash, never wrong.
void remove_if_held_by(const std::filesystem::path& path, const std::string& mark) {
  if (link_target(path) == mark) unlink(path.c_str());
}

// 0, or the error. The first claim makes the folder; a process that has finished may tidy it away again in between.
int make_link(const std::string& mark, const std::filesystem::path& path) {
  for (int i = 0; i < 100; ++i) {
    if (symlink(mark.c_str(), path.c_str()) == 0) return 0;
    if (errno != ENOENT) return errno;
    if (mkdir(path.parent_path().c_str(), 0700) != 0 && errno != EEXIST) return errno;
  }
  return ENOENT;
}

std::string new_mark() {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{}", process_mark(), ++count);
}

} // namespace

Claim::Claim(const std::filesystem::path& folder, const std::string& name, std::chrono::milliseconds bound,
             const std::function<bool()>& done)
    : path_(folder / name), mark_(new_mark()) {
  result_ = acquire(bound, done);
}

Claim::Result Claim::acquire(std::chrono::milliseconds bound, const std::function<bool()>& done) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + bound;
  auto pause = 1ms;
  while (true) {
    const int error = make_link(mark_, path_);
    if (error == 0) return Result::mine;
    if (error != EEXIST) return Result::unavailable;
    if (done()) return Result::done;
    const std::string holder = link_target(path_);
    struct stat info {};
    if (holder.empty() && lstat(path_.c_str(), &info) != 0) continue; // given back just now
    waited_ = true;
    holder_ = holder;
    if (surely_gone(holder)) {
      remove_if_held_by(path_, holder);
      continue;
    }
    if (std::chrono::steady_clock::now() >= end) {
      remove_if_held_by(path_, holder); // so that the next one need not wait as long
      return Result::expired;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, 50ms);
  }
}

Claim::~Claim() {
  if (result_ == Result::mine) remove_if_held_by(path_, mark_);
}

} // namespace kiln
