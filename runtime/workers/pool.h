// WorkerPool: compiles in worker processes, several at once, each under a limit of time and memory.
#pragma once
#include "gen/error.h"
#include "runtime/cache/entry.h"
#include "runtime/events.h"
#include "runtime/owner_process.h"
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <sys/types.h>
#include <vector>

namespace kiln {

struct WorkerOptions {
  std::filesystem::path program;                // kiln-worker; empty: beside the running program, where Kiln was installed, in PATH
  std::vector<std::string> variables;           // the whole environment of workers, "NAME=value"
  int count = 0;                                // at once; 0: one for each processor that this process may run on
  std::chrono::milliseconds time_limit{120000}; // of one compile
  std::uint64_t memory_limit = 4ull << 30;      // bytes of address space of one worker; 0: none
  bool in_process = false;                      // use no workers: hipRTC then compiles one kernel at a time
  bool own_process = false;                     // only Kiln compiles in this process: CompileOptions::preload_arguments may be done here
};
// Program and count as `environment` says. Variables: a copy of this process's, with what keys hold of them as `environment` has it,
// so that a variable that is set later reaches no worker.
WorkerOptions worker_options(const Environment& environment);

// The program that options.program leaves open; empty when there is none.
std::filesystem::path find_worker(const std::filesystem::path& given, const std::string& path_variable);

class WorkerProcess;

// The request preloads arguments, no worker can be had, and this process is not Kiln's own.
struct WorkerNeeded : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// hipRTC and comgr compile one kernel of a process at a time, whatever the thread; processes do not wait for each other.
// Workers start when they are needed, stay for the next kernel, and end with this process. Thread-safe.
class WorkerPool {
public:
  WorkerPool(WorkerOptions options, std::shared_ptr<EventLog> events);
  ~WorkerPool();

  // Throws what the compile throws, and EnvironmentError when the worker crashed, ran out of memory or took too long: with its
  // last words, and the path of a folder with the spec and the source. If no worker can be started, the compile runs in this
  // process, without limits, and the event "worker_unavailable" says why; throws WorkerNeeded for what must not be compiled in it.
  // Throws UserError in a child of fork().
  EntryFiles compile(const KernelRequest& request);

  // In this process and without limits, one at a time with the others of the pool. Throws as above.
  EntryFiles compile_here(const KernelRequest& request);

  // As kiln::compiler_parts, of the library that a worker loads: a process with little address space left may not survive that. In this
  // process where no worker can be had.
  CompilerParts compiler_parts(const Environment& environment);

  int count() const { return options_.count; }
  std::vector<pid_t> pids() const; // of the workers that wait for work

private:
  class Place; // one of `count`
  // Null when none can be had; with `noted` the event says why.
  std::unique_ptr<WorkerProcess> take(bool noted);
  std::unique_ptr<WorkerProcess> start(bool noted);
  void keep(std::unique_ptr<WorkerProcess> worker);
  [[noreturn]] void fail(const KernelRequest& request, const std::string& fact, const std::string& output) const;

  OwnerProcess owner_;
  WorkerOptions options_;
  std::shared_ptr<EventLog> events_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<WorkerProcess>> idle_;
  int busy_ = 0;
};

} // namespace kiln
