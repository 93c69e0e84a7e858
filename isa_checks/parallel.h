// in_parallel: work on several things at once.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <sched.h>
#include <thread>
#include <vector>

namespace kiln {

// That this process may run on; all of a machine of more than cpu_set_t holds.
inline std::size_t processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

// Calls work(0) to work(count - 1), `at_once` of them at a time, the caller's thread among those. When one throws, the others end, and it
// is thrown to the caller.
template <typename Work> void in_parallel(std::size_t count, std::size_t at_once, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto some = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> others; // which wait for their threads
  for (std::size_t t = 1; t < std::min(count, at_once); ++t) others.push_back(std::async(std::launch::async, some));
  some();
  for (std::future<void>& other : others) other.get();
}

} // namespace kiln
