// Claim: "I am compiling this", said to other processes through a symbolic link, which every file system makes in one step
// with its content, and on which nobody ever blocks.
#pragma once
#include "runtime/cache/folder/process_mark.h"
#include "runtime/folder.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>

namespace kiln {

class Claim {
public:
  enum class Result {
    mine,        // this object holds the claim; it is given back with it
    done,        // `done` said so while somebody else held it
    expired,     // the wait is over: whoever holds it is not to be waited for any longer
    unavailable, // no claim can be made there: read-only, full, or without symbolic links
  };

  // Waits for at most `bound` (of steady time: clocks may jump) while another process that may be alive holds the claim `name` in
  // claims/ of the folder `cache`, and asks `done` every few milliseconds. A holder that certainly died is taken over from.
  Claim(const Folder& cache, const std::string& name, std::chrono::milliseconds bound, const std::function<bool()>& done)
      : name_(name), mark_(unique_mark()) {
    try {
      result_ = acquire(cache, bound, done);
    } catch (const Untrusted&) {
      result_ = Result::unavailable;
    }
  }

  ~Claim() {
    if (result_ == Result::mine) remove_if_held_by(mark_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  Result result() const { return result_; }
  bool waited() const { return waited_; }
  const std::string& holder() const { return holder_; } // the last one that was waited for: "HOST-PID-START-N"

private:
  Result acquire(const Folder& cache, std::chrono::milliseconds bound, const std::function<bool()>& done) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + bound;
    for (auto pause = 1ms;; pause = std::min(2 * pause, 50ms)) {
      const int error = make_link(cache);
      if (error == 0) return Result::mine;
      if (error != EEXIST) return Result::unavailable;
      if (done()) return Result::done;
      if (const std::string holder = current_holder(); !holder.empty() || claims_.look(name_)) {
        waited_ = true;
        holder_ = holder;
        const bool gone = surely_gone(holder), over = std::chrono::steady_clock::now() >= end;
        if ((gone || over) && !holder.empty()) remove_if_held_by(holder); // so that the next one need not wait as long
        if (over) return Result::expired;
        if (gone && !claims_.look(name_)) continue; // free; where it could not be removed, it is waited for as any other
      } else if (std::chrono::steady_clock::now() >= end) {
        return Result::expired; // it comes and goes, and we were never in time
      }
      std::this_thread::sleep_for(pause);
    }
  }

  // Returns 0, or the error. The first claim makes the folder; a process that has finished may tidy it away again in between.
  int make_link(const Folder& cache) {
    for (int i = 0; i < 100; ++i) {
      if (claims_ && symlinkat(mark_.c_str(), claims_.descriptor(), name_.c_str()) == 0) return 0;
      if (claims_ && errno != ENOENT) return errno;
      claims_ = cache.make_child("claims");
      if (!claims_ && errno != ENOENT) return errno;
    }
    return ENOENT;
  }

  std::string current_holder() const { // empty: nobody, or no link
    std::string target(256, '\0');
    const ssize_t length = readlinkat(claims_.descriptor(), name_.c_str(), target.data(), target.size());
    target.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return target;
  }

  // Two of those who take over may remove each other's claim between reading and unlinking. Then two compile, and
  // one of the two equal results is thrown away: wasteful once in a crash, never wrong.
  void remove_if_held_by(const std::string& mark) const {
    if (current_holder() == mark) claims_.remove_file(name_);
  }
  Folder claims_;
  std::string name_, mark_, holder_;
  bool waited_ = false;
  Result result_;
};

} // namespace kiln
