// EventLog: what happened other than planned, counted by name.
#include "runtime/events.h"
#include <cstdio>
#include <fmt/format.h>

namespace kiln {

LogFunction log_to_stderr() {
  return [](const std::string& line) { fmt::print(stderr, "kiln: {}\n", line); };
}

void EventLog::note(std::string_view name, const std::string& detail) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = counts_.find(name); found != counts_.end()) {
      ++found->second;
      return;
    }
    counts_.emplace(name, 1);
  }
  if (log_) log_(fmt::format("{}: {} (said once; stats() counts the rest)", name, detail));
}

std::map<std::string, std::uint64_t> EventLog::counts() const {
  const std::lock_guard lock(mutex_);
  return {counts_.begin(), counts_.end()};
}

std::uint64_t EventLog::count(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(name);
  return found == counts_.end() ? 0 : found->second;
}

} // namespace kiln
