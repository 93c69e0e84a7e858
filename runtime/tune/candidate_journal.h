// CandidateJournal: which candidate is being measured, so that one that hangs the GPU, or ends the process, is met once and then skipped.
#pragma once
#include "runtime/events.h"
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace kiln {

// Two files beside a tuning table: TABLE.trying holds the candidate that is on the GPU now, TABLE.hung those that did not come back, a line
// each. A process that finds TABLE.trying was preceded by one that did not end well. One process a table at a time.
class CandidateJournal {
public:
  // `log` is told of a candidate that an earlier run left. Throws EnvironmentError when the files cannot be written.
  CandidateJournal(const std::filesystem::path& table, double seconds, const LogFunction& log);
  ~CandidateJournal();
  CandidateJournal(const CandidateJournal&) = delete;
  CandidateJournal& operator=(const CandidateJournal&) = delete;

  bool has_hung(const std::string& candidate) const { return hung_.contains(candidate); }
  std::size_t hung() const { return hung_.size(); }
  // Between the two the candidate has `seconds`. When they are over, the process says so and ends with exit code 1: a thread that waits
  // for a GPU that hangs cannot be stopped. An exception between them leaves the candidate as one that did not come back.
  void begin(const std::string& candidate);
  void end();

private:
  void watch();
  std::filesystem::path trying_, hung_file_;
  double seconds_;
  std::set<std::string> hung_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string candidate_; // empty: none is measured
  std::size_t turn_ = 0;  // counts begin and end, so that a wait knows its own candidate
  bool over_ = false;
  std::thread watcher_; // last: it uses all of the above
};

} // namespace kiln
