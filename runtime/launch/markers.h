// Markers: named ranges on a profiler's time line (roctx), around every compile, load and launch.
#pragma once
#include "runtime/launch/backend.h"
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// Ranges of a thread, which nest. A cheap value; copies share one library. Thread-safe.
class Markers {
public:
  // `roctx` is Environment::roctx: empty marks nothing and loads nothing; "1" takes the roctx library that the profiler has put into
  // this process, or searches for one; else it is the library's file. Throws EnvironmentError when there is none.
  explicit Markers(const std::string& roctx);

  bool active() const { return push_ != nullptr; }

  class Range {
  public:
    explicit Range(int (*pop)()) : pop_(pop) {}
    Range(const Range&) = delete;
    Range& operator=(const Range&) = delete;
    ~Range() {
      if (pop_ != nullptr) static_cast<void>(pop_());
    }

  private:
    int (*pop_)();
  };

  // "kiln WHAT KERNEL", from now to the end of the result's life, on this thread.
  Range range(std::string_view what, std::string_view kernel) const;

private:
  int (*push_)(const char* text) = nullptr;
  int (*pop_)() = nullptr;
};

// `code`, each launch of which is a range "kiln launch KERNEL"; `code` itself when `markers` are not active, so that a launch costs
// nothing more then.
std::unique_ptr<LoadedCode> marked(std::unique_ptr<LoadedCode> code, const Markers& markers, const std::string& kernel);

} // namespace kiln
