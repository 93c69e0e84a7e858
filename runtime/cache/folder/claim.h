// Claim: "I am compiling this", said to other processes through a symbolic link, which every file system makes in one step
// with its content, and on which nobody ever blocks.
#pragma once
#include "runtime/folder.h"
#include <chrono>
#include <functional>
#include <string>

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
  Claim(const Folder& cache, const std::string& name, std::chrono::milliseconds bound, const std::function<bool()>& done);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  Result result() const { return result_; }
  bool waited() const { return waited_; }
  const std::string& holder() const { return holder_; } // the last one that was waited for: "HOST-PID-START-N"

private:
  Result acquire(const Folder& cache, std::chrono::milliseconds bound, const std::function<bool()>& done);
  int make_link(const Folder& cache); // 0, or the error
  std::string current_holder() const; // empty: nobody, or no link
  void remove_if_held_by(const std::string& mark) const;
  Folder claims_;
  std::string name_, mark_, holder_;
  bool waited_ = false;
  Result result_;
};

} // namespace kiln
