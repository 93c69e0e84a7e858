// EventLog: what happened other than planned, counted by name, and logged at the first time of each name.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kiln {

// One line, without its end.
using LogFunction = std::function<void(const std::string& line)>;
LogFunction log_to_stderr(); // with "kiln: " before each line

// Thread-safe. Names are words of docs/cache.md ("entry_quarantined", "worker_unavailable", ...).
class EventLog {
public:
  explicit EventLog(LogFunction log) : log_(std::move(log)) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void note(std::string_view name, const std::string& detail);
  std::map<std::string, std::uint64_t> counts() const;
  std::uint64_t count(std::string_view name) const;

private:
  LogFunction log_; // called outside the lock
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

} // namespace kiln
