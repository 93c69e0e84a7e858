// EventLog: what happened other than planned, counted by name, and logged at the first time of each name.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln {

// One line, without its end. May throw: the line is on stderr then, and the event "log_threw" is counted.
using LogFunction = std::function<void(const std::string& line)>;
LogFunction log_to_stderr(); // with "kiln: " before each line

// Thread-safe. Names are words of docs/cache.md ("entry_quarantined", "worker_unavailable", ...).
class EventLog {
public:
  explicit EventLog(LogFunction log) : log_(std::move(log)) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void note(std::string_view name, const std::string& detail); // throws nothing but std::bad_alloc
  // Runs code of the program that Kiln lives in. Whatever that throws becomes the event `name`.
  void guard(std::string_view name, const std::function<void()>& call);
  std::map<std::string, std::uint64_t> counts() const;
  std::uint64_t count(std::string_view name) const;

private:
  bool count_one(std::string_view name); // true: for the first time
  LogFunction log_;                      // called outside the lock
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

} // namespace kiln
