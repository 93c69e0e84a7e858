// CandidateJournal: two small files and a thread with a clock.
#include "runtime/tune/candidate_journal.h"
#include "gen/error.h"
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>

namespace kiln {
namespace {

namespace fs = std::filesystem;

fs::path beside(const fs::path& table, const char* ending) { return fs::path(table.string() + ending); }

void write_line(const fs::path& file, const std::string& line, std::ios::openmode mode) {
  std::ofstream stream(file, mode);
  stream << line << "\n" << std::flush;
  if (!stream) throw EnvironmentError(file.string(), "it cannot be written", "choose an --output in a folder that this user may write to");
}

} // namespace

CandidateJournal::CandidateJournal(const fs::path& table, double seconds, const LogFunction& log)
    : trying_(beside(table, ".trying")), hung_file_(beside(table, ".hung")), seconds_(seconds) {
  std::string line;
  if (std::ifstream left(trying_); std::getline(left, line) && !line.empty()) {
    log(fmt::format("an earlier run ended while {} was on the GPU; it is skipped from now on ({})", line, hung_file_.string()));
    write_line(hung_file_, line, std::ios::app);
  }
  std::error_code error;
  fs::remove(trying_, error);
  for (std::ifstream stream(hung_file_); std::getline(stream, line);) hung_.insert(line);
  watcher_ = std::thread([this] { watch(); });
}

CandidateJournal::~CandidateJournal() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void CandidateJournal::begin(const std::string& candidate) {
  write_line(trying_, candidate, std::ios::trunc);
  {
    const std::lock_guard lock(mutex_);
    candidate_ = candidate, ++turn_;
  }
  changed_.notify_all();
}

void CandidateJournal::end() {
  {
    const std::lock_guard lock(mutex_);
    candidate_.clear(), ++turn_;
  }
  changed_.notify_all();
  std::error_code error;
  fs::remove(trying_, error);
}

void CandidateJournal::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    changed_.wait(lock, [this] { return over_ || !candidate_.empty(); });
    const std::size_t turn = turn_;
    if (over_ || changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [&] { return over_ || turn_ != turn; })) continue;
    fmt::print(stderr,
               "error: the GPU did not come back within {:g} s from {}; reset it (rocm-smi --gpureset, or reboot) and run the same command "
               "again, which skips this candidate and goes on\n",
               seconds_, candidate_);
    std::_Exit(1);
  }
}

} // namespace kiln
