// EventLog: what happened other than planned, counted by name.
#include "runtime/events.h"
#include <cstdio>
#include <exception>
#include <fmt/format.h>

namespace kiln {

LogFunction log_to_stderr() {
  return [](const std::string& line) { fmt::print(stderr, "kiln: {}\n", line); };
}

bool EventLog::count_one(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto found = counts_.find(name); found != counts_.end()) {
    ++found->second;
    return false;
  }
  counts_.emplace(name, 1);
  return true;
}

void EventLog::note(std::string_view name, const std::string& detail) {
  if (!count_one(name) || !log_) return;
  const std::string line = fmt::format("{}: {} (said once; stats() counts the rest)", name, detail);
  try {
    log_(line);
  } catch (...) { // the caller is in the middle of something, and the program's log is not worth it
    if (count_one("log_threw")) log_to_stderr()("log_threw: the program's log function threw at this line: " + line);
  }
}

void EventLog::guard(std::string_view name, const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    note(name, error.what());
  } catch (...) {
    note(name, "it threw something that is no std::exception");
  }
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
