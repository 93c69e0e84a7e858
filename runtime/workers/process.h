// WorkerProcess: one running kiln-worker.
#pragma once
#include "runtime/folder.h"
#include "runtime/workers/message.h"
#include <chrono>
#include <cstdint>
#include <filesystem>
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
  // Starts `program` with at most `memory_limit` bytes of address space and waits for its greeting.
  // Throws EnvironmentError: it cannot be started, or is of another Kiln.
  WorkerProcess(const std::filesystem::path& program, std::uint64_t memory_limit);
  ~WorkerProcess(); // kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // After a failure the worker is dead. Not thread-safe.
  std::variant<Message, WorkerFailure> ask(const Message& request, std::chrono::milliseconds limit);
  bool alive(); // asked while it is idle
  pid_t pid() const { return pid_; }

private:
  void start(const std::filesystem::path& program, std::uint64_t memory_limit);
  WorkerFailure end(const std::string& because); // kills, waits, and says how it ended unless `because` does
  std::string output() const;
  pid_t pid_ = -1;
  FileDescriptor socket_, output_;
};

} // namespace kiln
