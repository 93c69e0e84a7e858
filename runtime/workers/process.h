// WorkerProcess: one running kiln-worker.
#pragma once
#include "runtime/folder.h"
#include "runtime/owner_process.h"
#include "runtime/workers/message.h"
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <sys/types.h>
#include <variant>

namespace kiln {

// A worker that gave no answer, and why, in words: "was ended by signal 11 (Segmentation fault)".
struct WorkerFailure {
  std::string fact;
  std::string output; // the last of what it printed
};

class WorkerProcess {
public:
  // Starts `program` with `variables` ("NAME=value") as its whole environment and at most `memory_limit` bytes of address space,
  // and waits for its greeting. Throws EnvironmentError: it cannot be started, or is of another Kiln.
  WorkerProcess(const std::filesystem::path& program, std::span<const std::string> variables, std::uint64_t memory_limit);
  ~WorkerProcess(); // ends it, unless this process is a child of fork() that inherited the object
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // After a failure the worker is dead. Not thread-safe.
  std::variant<std::string, WorkerFailure> ask(const std::string& request, std::chrono::milliseconds limit);
  bool alive() const; // asked while it is idle
  pid_t pid() const { return pid_; }

private:
  void start(const std::filesystem::path& program, std::span<const std::string> variables, std::uint64_t memory_limit);
  bool wait_until_gone(std::chrono::milliseconds limit) const;
  std::string reap() const;
  void stop() const;
  WorkerFailure end(const std::string& because); // stops, waits, and says how it ended unless `because` does
  std::string output() const;

  OwnerProcess owner_;
  pid_t pid_ = -1;         // a name for people: the number may be another process's once this one is reaped
  FileDescriptor process_; // a pidfd, which is this process for ever; none where Linux gives none
  FileDescriptor socket_, output_;
};

} // namespace kiln
